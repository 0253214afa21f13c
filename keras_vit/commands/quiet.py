"""Keeps the notes of TensorFlow and its runtimes off the screen, and shows all other messages."""

import atexit
import contextlib
import logging
import os
import subprocess
import sys

LEVEL = "TF_CPP_MIN_LOG_LEVEL"
# Messages that ignore the level: TensorFlow writes them while its libraries load, before it reads the level.
NOTES = (
    r"I\d{4} ",
    r"WARNING: All log messages before absl::InitializeLog",
    r"INFO: Created TensorFlow Lite XNNPACK delegate",
    r"E\d{4} .*failed call to cuInit: .*\(303\)",  # no driver of a GPU
    r"E\d{4} .*oneDNN supports DT_U?INT\d+ only on",  # no fault: it takes another way
)
_FILTER = """
import re, sys
notes = re.compile(sys.argv[1].encode())
for line in sys.stdin.buffer:
    if not notes.match(line):
        sys.stderr.buffer.write(line)
        sys.stderr.flush()
"""


def quiet():
    """Drops TensorFlow's notes and warnings for the rest of this process, unless the user set their level.

    Libraries write to a second process, which drops `NOTES` and outlives a crash of this one. Python writes to the
    screen directly.
    """
    if LEVEL in os.environ:
        return
    os.environ[LEVEL] = "2"
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    logging.getLogger("absl").setLevel(logging.ERROR)
    command = [sys.executable, "-ISc", _FILTER, "|".join(NOTES)]
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True)
    screen = os.dup(2)
    sys.stderr = os.fdopen(screen, "w", 1, encoding=sys.stderr.encoding, errors="backslashreplace")
    os.dup2(reader.stdin.fileno(), 2)
    reader.stdin.close()
    atexit.register(_end, reader, screen)


def _end(reader, screen):
    """Lets the reader write what is left before the process ends."""
    os.dup2(screen, 2)
    with contextlib.suppress(subprocess.TimeoutExpired):  # a child of this process may still write there
        reader.wait(timeout=1)
