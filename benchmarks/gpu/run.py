"""Measures what OUT lacks of `pieces.py` until the time is up; see `run.sh`.

Pieces of one framework that follow each other share a process, and all share compiled programs on the disk.
"""

import argparse
import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

from pieces import KNOWN_PEAK, framework, least, pieces, tiny
from table import table

HERE = pathlib.Path(__file__).parent
OPTIONS = {"flash", "remat", "steps", "pooling"}  # which other pieces lack
DEVICE = "import jax; print(jax.devices()[0].device_kind)"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=560, help="of this call")
    parser.add_argument("--cifar10", nargs="*", default=[], help="files of pack.py")
    parser.add_argument("--rehearse", action="store_true", help="tiny models, on any machine")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    given.out.mkdir(parents=True, exist_ok=True)
    file, commit, device = given.out / "gpu.json", _commit(), _device()
    known = json.loads(file.read_text())["rows"] if file.exists() else []
    rows = [row for row in known if row["device"] == device]
    others = [row for row in known if row["device"] != device]  # of another card
    wanted, postponed = [], False
    for piece in pieces():
        piece = tiny(piece) if given.rehearse else piece
        if any(_is(piece, row) for row in rows if "error" not in row):
            continue
        rows = [row for row in rows if not _is(piece, row)]  # a piece that failed is tried again
        if piece["peer"] == "CIFAR-10":
            if not given.cifar10 and not given.rehearse:
                continue
            piece |= {"files": given.cifar10, "state": str(given.out / "cifar10.npz")}
        wanted.append(piece)
    for _, group in itertools.groupby(wanted, framework):
        for piece, row in _measured([*group], end, given.out):
            if row is None:
                postponed = True
                continue
            rows.append({k: v for k, v in {**piece, **row, "device": device}.items() if k not in ("files", "state")})
            print(*rows[-1].values(), sep="  ", flush=True)
            file.write_text(json.dumps({"commit": commit, "rows": rows + others}, indent=1) + "\n")
    if postponed:
        print("More is left: call this again.")
        sys.exit(3)
    print("\n".join(table(rows, KNOWN_PEAK)))
    failed = [row for row in rows if "error" in row]
    print(f"done: {len(rows)} pieces, {len(failed)} of which failed")
    sys.exit(1 if failed and given.rehearse else 0)


def _is(piece, row):
    """Returns whether a row is of a piece, and not of the same one with more options."""
    return piece.items() <= row.items() and OPTIONS & piece.keys() == OPTIONS & row.keys()


def _measured(group, end, out):
    """Yields each piece with what a worker found, `{"error": ...}`, or `None` if the time was over first.

    If a process ends in the middle of a piece, for example without memory, a new one continues with the next piece.
    """
    while group:
        done = 0
        with _worker(group, end, out) as lines:
            for line in lines:
                yield group[done], None if line == "late" else json.loads(line)
                done += 1
        if done == len(group):
            return
        if time.monotonic() >= end:
            print(f"Not finished in time: {group[done]}.")
            yield from ((piece, None) for piece in group[done:])
            return
        yield group[done], {"error": _last(out / "log")}
        group = group[done + 1 :]


@contextlib.contextmanager
def _worker(group, end, out):
    """Starts a process for some pieces; gives the lines that it prints, until the time is up."""
    torch = framework(group[0]) == "torch"  # JAX would take most of the memory first
    memory = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if torch else {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92"}
    cache = {"JAX_COMPILATION_CACHE_DIR": str(out / "cache"), "TORCHINDUCTOR_CACHE_DIR": str(out / "cache")}
    todo = [[piece, least(piece)] for piece in group]
    command = [sys.executable, str(HERE / "worker.py"), json.dumps(todo), str(max(end - time.monotonic(), 0))]
    with open(out / "log", "w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | memory | cache
        )
        timer = threading.Timer(max(end - time.monotonic(), 0), process.kill)
        timer.start()
        try:
            yield (line.strip() for line in process.stdout if line.startswith(("{", "late")))
        finally:
            timer.cancel()
            process.kill()
            process.wait()


def _last(log):
    """Returns the last line of a process's log."""
    return (log.read_text(errors="replace").strip().splitlines() or ["the process ended"])[-1][:200]


def _commit():
    try:
        asked = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=HERE)
    except OSError:  # a machine without git
        return ""
    return asked.stdout.strip()


def _device():
    """Returns the name of the device, in a process of its own, which gives its memory back."""
    return subprocess.run([sys.executable, "-c", DEVICE], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
