"""Robots are reached over TLS: trusted, not trusted, and cut off."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.notify.robots import Robots, answers_by_drops
from tune_guard.notify.service import Service
from tune_guard.notify.targets import read_targets


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of this machine's own, and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("apt-get install openssl")
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "certificate.pem", folder / "key.pem"
    subprocess.run(
        [
            *(openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-out", str(paths[0]), "-keyout", str(paths[1])),
        ],
        check=True,
        capture_output=True,
    )
    return paths


@pytest.fixture
def robots(certificate: tuple[Path, Path]) -> Iterator[Robots]:
    """The services behind TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with Robots() as server:
        listening = server.server.socket
        server.server.socket = context.wrap_socket(listening, server_side=True)
        yield server


def service(robots: Robots) -> Service:
    """Return a robot at the TLS address."""
    (found,) = read_targets(robots.url("dingtalk").replace("+http:", "+https:"))
    return found


def test_a_trusted_server_gets_the_message(
    robots: Robots, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The certificates that the system trusts, or a file that says so."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    assert service(robots).send("title", "body", 20.0).status == "sent"


def test_a_server_that_is_not_trusted_gets_nothing(robots: Robots) -> None:
    """No message, no token; and the reason is named."""
    delivery = service(robots).send("title", "body", 20.0)
    assert delivery.status == "retry"
    assert "SSLCertVerificationError" in delivery.message
    assert robots.requests == 0


def test_a_server_that_drips_is_given_up(
    robots: Robots, certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is hung up under the TLS layer too."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    robots.faults.append(answers_by_drops)
    delivery = service(robots).send("title", "body", 0.5)
    assert delivery.status == "retry"
    assert "no whole answer" in delivery.message
