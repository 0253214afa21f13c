"""Parquet files as tables: cells in rows, of a size that a table of images has, and errors that name the rows."""

import itertools

ROWS = 1024  # that are read together
MOST_CELL = 2**17  # bytes of a cell, as many as a CSV's may have: a small file may unpack to any number

PLAIN = ("string", "large_string", "binary", "large_binary")


def opened(file, stream, columns=None):
    """Returns pyarrow's `ParquetFile`.

    Args:
        file: The path, for errors.
        stream: The file, opened.
        columns: Names of those whose equal cells are unpacked once.

    Raises:
        ImportError: Without pyarrow.
        ValueError: For what is no Parquet file.
    """
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError(f"{str(file)!r} needs pyarrow, which is not installed: pip install pyarrow.") from None
    try:
        return pyarrow.parquet.ParquetFile(stream, read_dictionary=columns, page_checksum_verification=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise ValueError(f"{str(file)!r} is no Parquet file: {_line(error)}") from None


def rows(file, stream, columns):
    """Yields pairs of a row's number, from 1, and a list of its cells.

    Args:
        file, stream: As in `opened`.
        columns: Names of columns, as the file has them.

    Raises:
        ValueError: For damaged rows, and for cells that are too large.
    """
    names = list(dict.fromkeys(columns))
    schema = opened(file, stream).schema_arrow
    table = opened(file, stream, [name for name in names if str(schema.field(name).type) in PLAIN])
    _check_sizes(file, table.metadata, set(names))
    batches, row = table.iter_batches(ROWS, columns=names), 0
    while (values := _next(file, batches, row, columns)) is not None:
        yield from zip(itertools.count(row + 1), map(list, zip(*values)))
        row += len(values[0])


def _next(file, batches, row, columns):
    """Returns the cells of the next rows, a list for each column; `None` at the end."""
    import pyarrow

    try:
        batch = next(batches, None)
        if batch is None:
            return None
        if any(_largest(array) > MOST_CELL for array in batch.columns):
            raise ValueError(f"a cell has more than {MOST_CELL} bytes")
        values = {name: batch.column(name).to_pylist() for name in columns}
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{str(file)!r} cannot be read in one of the rows from {row + 1} to {row + ROWS}: {_line(error)}"
        ) from None
    return [values[name] for name in columns]


def _line(error):
    return f"{' '.join(str(error).split()):.200}".removesuffix(".") + "."


def _check_sizes(file, metadata, columns):
    """Raises ValueError if cells are too large on average, before they are unpacked."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        parts = (group.column(i) for i in range(group.num_columns))
        for part in parts:
            name = part.path_in_schema.partition(".")[0]
            if name in columns and part.total_uncompressed_size > MOST_CELL * max(group.num_rows, 1):
                raise ValueError(
                    f"Cells of {str(file)!r} must have at most {MOST_CELL} bytes. Received: "
                    f"{part.total_uncompressed_size} bytes of {name!r} in {group.num_rows} rows"
                )


def _largest(array):
    """Returns the bytes of the largest cell of an array of pyarrow, those of numbers left out."""
    import pyarrow
    import pyarrow.compute

    kind = array.type
    if pyarrow.types.is_dictionary(kind):
        return _largest(array.dictionary)
    if pyarrow.types.is_struct(kind):
        return sum(map(_largest, array.flatten()))
    if pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind):
        count = pyarrow.compute.max(pyarrow.compute.list_value_length(array)).as_py() or 0
        return count * max(_largest(array.flatten()), 8)
    if str(kind) in PLAIN:
        return pyarrow.compute.max(pyarrow.compute.binary_length(array)).as_py() or 0
    return 0
