"""Measures what OUT lacks of `pieces.py`, each piece in a process of its own, until the time is up; see `run.sh`."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

from pieces import KNOWN_PEAK, least, pieces, tiny
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
    postponed = False
    for piece in pieces():
        piece = tiny(piece) if given.rehearse else piece
        if any(_is(piece, row) for row in rows if "error" not in row):
            continue
        rows = [row for row in rows if not _is(piece, row)]  # a piece that failed is tried again
        if piece["peer"] == "CIFAR-10":
            if not given.cifar10 and not given.rehearse:
                continue
            piece |= {"files": given.cifar10, "state": str(given.out / "cifar10.npz")}
        left = end - time.monotonic()
        if left < least(piece):
            postponed = True
            continue
        row = _measured(piece, left, given.out / "log")
        if row is None:
            sys.exit(3)
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


def _measured(piece, seconds, log):
    """Returns what the worker found, `{"error": ...}`, or `None` if the time was over first."""
    command = [sys.executable, str(HERE / "worker.py"), json.dumps(piece)]
    torch = "PyTorch" in piece["peer"] or "timm" in piece["peer"]  # JAX would take most of the memory first
    memory = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if torch else {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.92"}
    environment = os.environ | memory
    with open(log, "a") as written:
        before = written.tell()
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=written, text=True, timeout=seconds, env=environment
            )
        except subprocess.TimeoutExpired:
            print(f"Not finished in the {seconds:.0f} s that were left: {piece}. Call this again.")
            return None
    if done.returncode:
        said = log.read_text(errors="replace")[before:].strip().splitlines()
        return {"error": said[-1][:200] if said else f"exit status {done.returncode}"}
    return json.loads(done.stdout.splitlines()[-1])


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
