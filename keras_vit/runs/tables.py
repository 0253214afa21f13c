"""Tables of predictions, JSON and CSV, written row by row, so that memory does not grow with them."""

import contextlib
import csv
import json
import os
import shutil
import sys
import tempfile
import textwrap

from keras_vit.utils.files import closing, naming, replacing

RUNS = "segmentation"  # run lengths of a mask, which CSV leaves out
POINTS, POINT = "keypoints", "keypoint "  # a column of `of_points` begins with the latter
TEXT = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}


class Json:
    """A list of dictionaries, as `json.dump` writes it with `indent=1`."""

    def __init__(self, file, columns):
        self.file = file
        self.file.write("[")
        self.before = ""

    def add(self, row):
        text = f"{self.before}\n{textwrap.indent(json.dumps(row, indent=1, allow_nan=False), ' ')}"
        self.before = ","
        self.file.write(text)  # at once: Ctrl-C comes before or after it

    def end(self):
        self.file.write("]\n" if self.file.tell() == 1 else "\n]\n")


class Csv:
    """A table with a line of columns' names; a `"bbox"` and `"keypoints"` have a column for each of their numbers.

    Masks are left out.
    """

    def __init__(self, file, columns):
        self.file = file
        self.table = csv.DictWriter(file, columns)
        self.table.writeheader()

    def add(self, row):
        flat = dict(zip(("x", "y", "width", "height"), row.get("bbox", ())))
        flat |= dict(zip((column for column in self.table.fieldnames if column.startswith(POINT)), row.get(POINTS, ())))
        nested = ("bbox", POINTS, RUNS)
        self.table.writerow({name: value for name, value in {**row, **flat}.items() if name not in nested})

    def end(self):
        pass


def of_points(names):
    """Returns the columns of keypoints, by their names: x, y and score of each."""
    return [f"{POINT}{name} {number}" for name in names for number in ("x", "y", "score")]


KINDS = {"json": Json, "csv": Csv}


@contextlib.contextmanager
def written(paths, columns):
    """Yields a function that adds rows to tables. Their files appear at the end of the block, whole.

    Args:
        paths: The files, a dictionary from `"json"` and `"csv"` to paths.
        columns: Names of the columns of a CSV file.

    Ctrl-C is the end of the block, too: what was added before is written then.

    Raises:
        OSError: If writing fails. No file is there then, nor after another error.
    """
    with contextlib.ExitStack() as stack:
        tables = {path: stack.enter_context(_begun(name, path, columns)) for name, path in paths.items()}
        added = []  # whether anything was

        def add(rows):
            for path, table in tables.items():
                with naming(path):
                    for row in rows:
                        table.add(row)
            added[:] = [True]

        try:
            yield add
        except KeyboardInterrupt:
            if added:
                _finish(tables)
            for path in tables if added else ():
                print(f"{str(path)!r} has what was done until then.", file=sys.stderr, flush=True)
            raise
        _finish(tables)


@contextlib.contextmanager
def _begun(name, path, columns):
    """Yields a table in a file that has no name, in the folder of its path."""
    with naming(path):
        file = tempfile.TemporaryFile("w+", dir=path.absolute().parent, **TEXT)  # noqa: SIM115
    with closing(file):
        with naming(path):
            table = KINDS[name](file, columns)
        yield table


def _finish(tables):
    """Puts the files of tables in their places."""
    with contextlib.ExitStack() as stack:
        for path, table in tables.items():
            with naming(path):
                table.end()
                table.file.seek(0)  # and flushed
            temporary = stack.enter_context(replacing(path))  # all are renamed when all were written
            with open(temporary, "w", **TEXT) as file:
                shutil.copyfileobj(table.file, file)


def check(paths):
    """Raises ValueError or FileExistsError unless tables can be written to paths, a dictionary as of `written`."""
    for name, path in paths.items():
        if path.suffix != f".{name}":
            raise ValueError(f"`{name}` must end in .{name}. Received: {name}={str(path)!r}")
        if taken(name, path):
            raise FileExistsError(f"{str(path)!r} exists. Choose another file.")
        if not path.absolute().parent.is_dir():
            raise ValueError(f"The folder of `{name}` must exist. Received: {name}={str(path)!r}")


def taken(name, path):
    """Returns whether something is at a path, be it a link to nothing; raises ValueError if nothing can be there."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:  # such as too long a name
        raise ValueError(f"`{name}` cannot be written: {error.strerror}. Received: {name}={str(path)!r}") from None
    return True
