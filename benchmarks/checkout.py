"""The checkout that is measured."""

import pathlib
import subprocess


def commit():
    """Returns the short name of the checkout's commit, or an empty string outside a checkout."""
    words = ("git", "rev-parse", "--short", "HEAD")
    return subprocess.run(words, capture_output=True, text=True, cwd=pathlib.Path(__file__).parent).stdout.strip()
