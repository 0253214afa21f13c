"""Tables of predictions, JSON and CSV, written row by row, so that memory does not grow with them."""

import contextlib
import csv
import json
import shutil
import tempfile
import textwrap

from keras_vit.utils.files import replacing

TEXT = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}


class Json:
    """A list of dictionaries, as `json.dump` writes it with `indent=1`."""

    def __init__(self, file, columns):
        self.file = file
        self.before = "["

    def add(self, row):
        self.file.write(f"{self.before}\n{textwrap.indent(json.dumps(row, indent=1, allow_nan=False), ' ')}")
        self.before = ","

    def end(self):
        self.file.write("[]\n" if self.before == "[" else "\n]\n")


class Csv:
    """A table with a line of columns' names; a `"bbox"` has a column for each of its numbers."""

    def __init__(self, file, columns):
        self.file = file
        self.table = csv.DictWriter(file, columns)
        self.table.writeheader()

    def add(self, row):
        box = dict(zip(("x", "y", "width", "height"), row.get("bbox", ())))
        self.table.writerow({name: value for name, value in {**row, **box}.items() if name != "bbox"})

    def end(self):
        pass


KINDS = {"json": Json, "csv": Csv}


@contextlib.contextmanager
def written(paths, columns):
    """Yields a function that adds rows to tables. Their files appear at the end of the block, whole.

    Args:
        paths: The files, a dictionary from `"json"` and `"csv"` to paths.
        columns: Names of the columns of a CSV file.

    Raises:
        OSError: If writing fails. No file is there then.
    """
    with contextlib.ExitStack() as stack:
        open_in = lambda folder: stack.enter_context(tempfile.TemporaryFile("w+", dir=folder, **TEXT))  # noqa: E731
        tables = {path: KINDS[name](open_in(path.absolute().parent), columns) for name, path in paths.items()}

        def add(rows):
            for table in tables.values():
                for row in rows:
                    table.add(row)

        yield add
        for path, table in tables.items():
            table.end()
            table.file.seek(0)
            temporary = stack.enter_context(replacing(path))  # all are renamed when all were written
            with open(temporary, "w", **TEXT) as file:
                shutil.copyfileobj(table.file, file)
