"""Where messages go: read from URLs, which hold secrets and are never shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from tune_guard.exceptions import ConfigError, did_you_mean
from tune_guard.notify.dingtalk import DingTalk
from tune_guard.notify.feishu import Feishu, Lark
from tune_guard.notify.robot import Robot
from tune_guard.notify.service import Service

ROBOTS: dict[str, type[Robot]] = {"dingtalk": DingTalk, "feishu": Feishu, "lark": Lark}

ADDRESSES = {
    "dingtalk": "https://oapi.dingtalk.com/robot/send?access_token=",
    "feishu": "https://open.feishu.cn/open-apis/bot/v2/hook/",
    "lark": "https://open.larksuite.com/open-apis/bot/v2/hook/",
}

HOSTS = {
    "oapi.dingtalk.com": "dingtalk",
    "open.feishu.cn": "feishu",
    "open.larksuite.com": "lark",
}

OPTIONS = ("secret", "keyword")

LONGEST_OPTION = 10
"""A longer name is not shown in an error: it may be part of a secret."""

FORMS = "Write dingtalk://TOKEN?secret=SEC..., or paste the robot's whole URL."


def read_targets(setting: str) -> list[Service]:
    """Return the services that a setting names.

    Args:
        setting: URLs between blanks; each may also be the path of a file with one
            URL a line, ``#`` before a comment. A URL is
            ``dingtalk://TOKEN?secret=SEC...&keyword=...``, the same for ``feishu``
            and ``lark``, the robot's own URL with ``&secret=...`` behind it, that
            of a relay after ``dingtalk+``, or any URL of apprise.

    Raises:
        ConfigError: If one cannot be meant; the message holds no part of it.
    """
    found: dict[str, Service] = {}
    for place, url in _entries(setting):
        service = _service(place, url)
        found.setdefault(service.mark, service)
    return list(found.values())


def _entries(setting: str) -> Iterator[tuple[str, str]]:
    for number, word in enumerate(setting.split(), 1):
        if "://" in word:
            yield f"entry {number}", word
            continue
        path = Path(word).expanduser()
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            msg = (
                f"entry {number} is neither a URL nor a file that can be read"
                f" ({type(error).__name__}). {FORMS}"
            )
            raise ConfigError(msg) from None
        for row, line in enumerate(lines, 1):
            if line.strip() and not line.lstrip().startswith("#"):
                yield f"line {row} of {path}", line.strip()


def _service(place: str, url: str) -> Service:
    scheme, _, rest = url.partition("://")
    kind, _, relay = scheme.lower().partition("+")
    if kind in ROBOTS and relay:
        return _by_address(place, kind, f"{relay}://{rest}")
    if kind in ROBOTS:
        return _by_token(place, kind, rest)
    if kind == "https" and urlsplit(url).hostname in HOSTS:
        return _by_address(place, HOSTS[urlsplit(url).hostname or ""], url)
    from tune_guard.notify.apprise_bridge import AppriseService

    try:
        return AppriseService(url)
    except ConfigError as error:
        msg = f"{place} ({kind}): {error}"
        raise ConfigError(msg) from None


def _by_token(place: str, kind: str, rest: str) -> Robot:
    token, _, query = rest.partition("?")
    token = unquote(token.rstrip("/"))
    if not token or "@" in token or "/" in token:
        msg = f"{place} ({kind}): this is no token of a robot. {FORMS}"
        raise ConfigError(msg)
    options = _options(place, kind, query.split("&") if query else [])
    secret, keyword = (options.get(name, "") for name in OPTIONS)
    address = ADDRESSES[kind] + quote(token, safe="")
    return ROBOTS[kind](address, token, secret, keyword)


def _by_address(place: str, kind: str, url: str) -> Robot:
    """Take a robot's own URL, or that of a relay with the same path and query."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        msg = f"{place} ({kind}): this is no URL. {FORMS}"
        raise ConfigError(msg)
    fields = parts.query.split("&") if parts.query else []
    ours = [field for field in fields if field.partition("=")[0] in OPTIONS]
    theirs = "&".join(field for field in fields if field not in ours)
    token = theirs.rpartition("access_token=")[2].partition("&")[0]
    token = token if kind == "dingtalk" else parts.path.rpartition("/")[2]
    if not token:
        msg = f"{place} ({kind}): the URL holds no token. {FORMS}"
        raise ConfigError(msg)
    address = parts._replace(query=theirs, fragment="").geturl()
    options = _options(place, kind, ours)
    secret, keyword = (options.get(name, "") for name in OPTIONS)
    return ROBOTS[kind](address, unquote(token), secret, keyword)


def _options(place: str, kind: str, fields: list[str]) -> dict[str, str]:
    """Read options; a plus sign is a plus sign, as secrets may hold one."""
    options: dict[str, str] = {}
    for field in fields:
        name, _, value = field.partition("=")
        if name not in OPTIONS:
            known = "=" in field and len(name) <= LONGEST_OPTION and name.isalpha()
            hint = did_you_mean(name, OPTIONS)
            what = repr(name) if known else "a part of it"
            msg = f"{place} ({kind}): {what} is no option. {hint}"
            raise ConfigError(msg)
        options[name] = unquote(value)
    return options
