"""Help that fits the terminal: tyro breaks the lines inside its boxes, and not those of usage and descriptions."""

import contextlib
import io
import re
import sys
import textwrap

from keras_vit.utils.tables import places, terminal

COLORS = re.compile(r"\x1b\[[0-9;]*m")
ASKING = ("-h", "--help")


@contextlib.contextmanager
def wrapped(words):
    """Breaks the long lines of the help that is printed in the block, if the words of the command ask for help."""
    if not {*ASKING} & {*words}:
        yield
        return
    output = Kept(sys.stdout)
    try:
        with contextlib.redirect_stdout(output):
            yield
    finally:
        print(broken(output.getvalue(), terminal()), end="")


class Kept(io.StringIO):
    """A stream that keeps what is written, with the colors and the letters of boxes that another would get."""

    def __init__(self, stream):
        super().__init__()
        self.isatty = stream.isatty
        self.stream = stream

    @property
    def encoding(self):
        return self.stream.encoding


def broken(text, width):
    """Returns a text whose long lines are broken between words; lines of boxes stay as they are."""
    lines = []
    for line in text.splitlines():
        plain = COLORS.sub("", line)
        if places(plain) <= width or plain[:1] in "╭│╰":
            lines.append(line)
            continue
        plain = re.sub(r"\{[^{} ]*\}", lambda match: match[0].replace(",", ", "), plain)  # {list,show,...}
        joined = re.sub(r"\[[^\[\]]* [^\[\]]*\]", lambda match: match[0].replace(" ", "\0"), plain)  # [--to DIR]
        further = " " * 7 if plain.startswith("usage: ") else ""
        parts = textwrap.wrap(joined, width, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)
        lines += [part.replace("\0", " ") for part in parts]
    return "".join(f"{line}\n" for line in lines)
