"""A stream that is a terminal or a file."""

import io


class Stream(io.StringIO):
    """What is written, as a terminal or as a file."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal

    @property
    def screen(self):
        """The lines as a terminal shows them, where a carriage return begins the line anew."""
        lines = []
        for written in self.getvalue().split("\n"):
            line = ""
            for part in written.split("\r"):
                line = part + line[len(part) :]
            lines.append(line.rstrip())
        return lines
