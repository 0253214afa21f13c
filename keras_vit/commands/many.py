"""Helpers of commands for many images: find the files, show answers as they come, end with an error if some fail."""

import sys

COLUMNS = ("image_id", "name", "value")  # of a table of answers


def files_of(images):
    """Returns the paths of image files, and of those in folders."""
    from keras_vit.runs.predictions import image_files

    return image_files(images)


def if_bad(files):
    """Returns what to do about files that cannot be read: one alone is an error."""
    return "skip" if len(files) > 1 else "raise"


def tables_of(json, csv):
    """Returns the paths of tables that were asked for, a dictionary; raises unless all can be written."""
    from keras_vit.runs import tables

    paths = {name: path for name, path in (("json", json), ("csv", csv)) if path is not None}
    tables.check(paths)
    return paths


def show(answers, count, lines, paths, rows, columns=COLUMNS):
    """Prints answers as soon as they are there, and writes them as tables; what was done before Ctrl-C is in both.

    Args:
        answers: Iterable of `(image, answer, fault)`; the fault, a text or an error, is `None`, or the answer.
        count: Number of images.
        lines: Function from an image and its answer to what is printed.
        paths: What `tables_of` returned.
        rows: Function from an image and its answer to rows of the tables, dictionaries.
        columns: Columns of a CSV table.

    Raises:
        ValueError: If the only image cannot be read.
        SystemExit: If some cannot be read; a warning has named them.
    """
    from keras_vit.runs import predictions, tables
    from keras_vit.utils.warned import left_out

    faults = []
    with tables.written(paths, columns) as add:
        for image, answer, fault in predictions.followed(answers, count):
            if fault is not None:
                faults.append(str(fault))
                continue
            print(lines(image, answer), flush=True)
            if paths:
                add(rows(image, answer))
        if faults and count == 1:
            raise ValueError(faults[0])
    if faults:
        left_out(f"{len(faults)} of {count} images, which cannot be read", [shown(fault) for fault in faults])
    end([True] * (count - len(faults)) + [False] * len(faults))


def end(answers):
    """Ends the command with status 1 if images have no answer; a warning has named them."""
    bad = sum(not answer for answer in answers)
    if bad:
        print(f"error: {bad} of {len(answers)} images cannot be read.", file=sys.stderr)
        sys.exit(1)


def needed(model):
    """Returns the name of a model; raises ValueError if it was not given."""
    if not model:
        raise ValueError("--model is missing: published weights, such as S/14-dinov2, or a run directory.")
    return model


def shown(path):
    """Returns a path, or a text, that can be printed."""
    from keras_vit.utils import folders

    return folders.shown(path)


def tiling_of(tiles, size, overlap):
    """Returns the options of tiles that a command line has, or `None`."""
    options = {name: value for name, value in {"size": size, "overlap": overlap}.items() if value is not None}
    return options or (True if tiles else None)
