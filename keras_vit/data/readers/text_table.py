"""Texts of texts: two columns of a table, or two lists."""

import pathlib

import numpy as np

from keras_vit.data.memory import Source
from keras_vit.data.readers import table_file
from keras_vit.data.readers.table_cells import group_of
from keras_vit.data.readers.texts import TextColumns, of_array
from keras_vit.utils import checks
from keras_vit.utils.warned import left_out

USUAL = {"sources": ("source", "sources", "input"), "texts": ("text", "texts", "target", "caption")}
ENDINGS = (".csv", ".jsonl", ".parquet")


def read(path, split, data, targets, extras):
    """Returns a split of a table: a `Source` whose `images` are the texts to read, a tuple of strings each.

    Rows with the same source stay in one part. A list in a cell is several texts, which only the target may have.

    Args:
        path: A CSV, JSON lines or Parquet file.
        split: `"all"`, or a part of it, as in `Source.part`.
        data: A `keras_vit.config.Data`; its `columns` may name the columns of `"sources"` and `"texts"`.
        targets, extras: Names of targets; only `"texts"` can be read.

    Raises:
        ValueError: For another file or target, an unknown column or split, a row without a text.
        FileNotFoundError: If there is no such file.
    """
    file = pathlib.Path(path).expanduser()
    if file.suffix not in ENDINGS:
        raise ValueError(
            f"A table must end in {', '.join(ENDINGS)}. Images with a table are 'folder:PATH'. Received: {str(path)!r}"
        )
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}.")
    if tuple(targets) != ("texts",):
        wanted = ", ".join(targets) or "no targets"
        raise ValueError(f"A table of texts is for Translate. Received: {str(path)!r} for {wanted}")
    names = _columns(file, data.columns or {})
    makers = {role: TextColumns([name]) for role, name in names.items()}
    bad = []
    for line, cells in table_file.read(file, [*names.values()]):
        try:
            row = [maker.parse([cell]) for maker, cell in zip(makers.values(), cells)]
            _check_one(row[0])
        except ValueError as error:
            bad.append(f"line {line}: {error}")
            continue
        for maker, texts in zip(makers.values(), row):
            maker.add(texts)
    sources, texts = (makers[role].made() for role in ("sources", "texts"))
    if bad and (data.bad_images == "raise" or not len(sources)):
        raise ValueError(f"{len(bad)} rows of {str(file)!r} are wrong. The first: {bad[0]}")
    if bad:
        left_out(f"{len(bad)} rows of {file.name}", bad)
    return _source(sources, texts).part(split, "all")


def from_arrays(arrays):
    """Returns the source of the caller's own texts.

    Args:
        arrays: A pair: a list of strings, and one of strings, or of several for each; or ids, `(texts, length)`.

    Raises:
        ValueError: For anything else.
    """
    if not isinstance(arrays, (tuple, list)) or len(arrays) != 2:
        raise ValueError(f"Arrays must be a pair (sources, texts). Received: {checks.shown(arrays):.60}")
    sources = arrays[0]
    if not hasattr(sources, "__len__") or isinstance(sources, (str, bytes)):
        raise ValueError(f"Sources must be a list of strings. Received: {checks.shown(sources):.60}")
    sources, texts = (of_array(each, sources, what="source") for each in arrays)
    for each in sources:
        _check_one(each)
    return _source(sources, texts)


def _check_one(texts):
    """Raises ValueError unless a source is one text, or ids."""
    if not isinstance(texts, np.ndarray) and len(texts) != 1:
        raise ValueError(f"A source must be one text. Received: {len(texts)}, {checks.shown(texts):.60}")


def _columns(file, given):
    """Returns the names of the columns, by what they hold."""
    unknown = sorted({*given} - {*USUAL})
    if unknown:
        raise ValueError(f"`data.columns` of a table of texts may name sources and texts. Received: {unknown[0]!r}")
    header, found = table_file.columns_of(file), {}
    for role, usual in USUAL.items():
        name = given.get(role) or next((name for name in usual if name in header), None)
        if name is None or not isinstance(name, str):
            raise ValueError(
                f"{str(file)!r} must have a column of {role}: {', '.join(usual)}, or that of data.columns, "
                f"{{'{role}': 'NAME'}}. Received: {', '.join(header[: table_file.SHOWN])}"
            )
        found[role] = name
    return found


def _source(sources, texts):
    keys = [row.tobytes() if isinstance(row, np.ndarray) else row[0] for row in sources]
    return Source(sources, {"texts": texts}, groups=np.array([group_of(key) for key in keys], "int64"))
