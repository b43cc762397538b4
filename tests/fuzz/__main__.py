"""Follow the targets' coverage: ``python -m tests.fuzz [--target NAME] [--seconds N]``.

Needs atheris (``pip install atheris``, in the extra ``dev`` where it has a wheel).
Prints one line a target: executions, coverage before and after, crashes. Exits 1
when one crashed, hung for 25 s or took more than 2 GiB; the input lies in the
folder of ``--crashes``, and ``--again FILE`` runs it once more.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz.mutations import HOSTILE
from tests.fuzz.targets import every_target

_MOST_MIB = 2048
_SLOWEST_S = 25
_ROW = "{:<28} {:>9} {:>9} {:>9} {:>8}"
_COVERED = re.compile(r"#(\d+)\s+(\w+)\s+cov: (\d+)")


def main() -> int:
    """Run the targets that are asked for, one after another."""
    options = _options()
    targets = every_target()
    names = [options.target] if options.target else list(targets)
    if options.again:
        targets[names[0]].call(options.again.read_bytes())
        return 0
    if find_spec("atheris") is None:
        sys.stderr.write("atheris is missing: pip install atheris (Linux, x86-64)\n")
        return 2
    options.crashes.mkdir(parents=True, exist_ok=True)
    print(_ROW.format("target", "runs", "cov. from", "to", "crashes"), flush=True)
    crashed = [_follow(n, options.seconds, options.crashes) for n in names]
    return 1 if any(crashed) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", choices=sorted(every_target()))
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--crashes", type=Path, default=Path("fuzz-crashes"))
    parser.add_argument("--again", type=Path, help="run one input of --target")
    options = parser.parse_args()
    if options.again and not options.target:
        parser.error("--again needs --target")
    return options


def _follow(name: str, seconds: int, crashes: Path) -> bool:
    """Fuzz one target in a process of its own; return whether it crashed."""
    with tempfile.TemporaryDirectory(prefix="tune_guard-fuzz-") as folder:
        corpus, words = Path(folder, "corpus"), Path(folder, "words")
        corpus.mkdir()
        for number, seed in enumerate(every_target()[name].seeds()):
            (corpus / str(number)).write_bytes(seed)
        words.write_text(_dictionary(), encoding="utf-8")
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.fuzz.worker", name, str(corpus)),
                *(f"-max_total_time={seconds}", f"-rss_limit_mb={_MOST_MIB}"),
                *(f"-timeout={_SLOWEST_S}", f"-dict={words}", "-max_len=100000"),
                *(f"-artifact_prefix={crashes}/{name}-", "-print_final_stats=1"),
            ],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    found = _COVERED.findall(done.stderr)
    first = next((cover for _, event, cover in found if event == "INITED"), "?")
    runs, _, last = found[-1] if found else ("0", "", "?")
    print(_ROW.format(name, runs, first, last, int(done.returncode != 0)), flush=True)
    if done.returncode:
        sys.stderr.write(done.stderr[-3000:] + done.stdout[-3000:] + "\n")
    return done.returncode != 0


def _dictionary() -> str:
    """Return the hostile values in the form of libFuzzer, but for the long ones."""
    short = [value for value in HOSTILE if len(value) <= 64]
    lines = ["".join(f"\\x{byte:02x}" for byte in value) for value in short]
    return "".join(f'"{line}"\n' for line in lines)


if __name__ == "__main__":
    sys.exit(main())
