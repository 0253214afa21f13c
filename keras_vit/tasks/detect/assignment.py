"""The optimal assignment of rows to columns, inside a compiled training step."""

from keras import ops

from keras_vit.utils.taking import rows_of

MOST = 1e6  # costs are clipped to this


def assign(costs, counts):
    """Assigns a different column to each row, so that the sum of the costs is minimal.

    The shortest augmenting path algorithm: Jonker and Volgenant 1987 (doi:10.1007/BF02278710), for more columns than
    rows as in Crouse 2016 (doi:10.1109/TAES.2016.140952), sections II and III. All matrices of the batch advance
    together: a matrix takes at most `rows * (rows + 1) / 2` passes over its columns. It is exact but for the rounding
    of sums in float32. There is no gradient.

    Args:
        costs: float32 tensor, `(batch, rows, columns)`. NaN counts as the highest cost.
        counts: Integer tensor, `(batch,)`: number of rows to assign in each matrix; the rows after them are padding.

    Returns:
        int32 tensor, `(batch, rows)`: the column of each row, -1 for padding.

    Raises:
        ValueError: If there are more rows than columns.
    """
    batch, (rows, columns) = ops.shape(costs)[0], costs.shape[1:]
    if rows > columns:
        raise ValueError(f"Each row needs a column of its own. Received: {rows} rows and {columns} columns")
    costs = ops.clip(ops.nan_to_num(ops.stop_gradient(ops.cast(costs, "float32")), nan=MOST), -MOST, MOST)
    counts = ops.cast(counts, "int32")

    def add_row(row, state):
        of_rows, of_columns, owners, chosen = state
        active = row < counts
        search = _shortest_path(costs, row, active, of_rows, of_columns, owners)
        seen_rows, seen, low, shortest, path, end = search
        own = ops.expand_dims(low, 1)
        places = rows_of(shortest, ops.maximum(chosen, 0))  # of each row's column
        steps = own - ops.where(ops.arange(rows) == row, 0.0, places)
        of_rows = of_rows + ops.where(seen_rows, steps, 0.0)
        of_columns = of_columns - ops.where(seen, own - shortest, 0.0)
        owners, chosen = _turn(path, end, row, active, owners, chosen)
        return of_rows, of_columns, owners, chosen

    free = (ops.full((batch, columns), -1, "int32"), ops.full((batch, rows), -1, "int32"))
    duals = (ops.zeros((batch, rows), "float32"), ops.zeros((batch, columns), "float32"))
    return ops.fori_loop(0, rows, add_row, (*duals, *free))[-1]


def _shortest_path(costs, row, active, of_rows, of_columns, owners):
    """Finds the shortest alternating path from a row to a free column, in each matrix, by Dijkstra's algorithm."""
    batch, (rows, columns) = ops.shape(costs)[0], costs.shape[1:]

    def visit(state):
        seen_rows, seen, low, shortest, path, end, here = state
        going = ops.expand_dims(end < 0, 1)
        seen_rows = ops.logical_or(seen_rows, ops.logical_and(going, _at(here, rows)))
        cost = ops.squeeze(rows_of(costs, here[:, None]), 1) - _of(of_rows, here)
        reached = ops.expand_dims(low, 1) + cost - of_columns
        better = ops.logical_and(ops.logical_and(going, ops.logical_not(seen)), reached < shortest)
        path, shortest = ops.where(better, here[:, None], path), ops.where(better, reached, shortest)
        beyond = ops.where(seen, float("inf"), shortest)
        column = ops.cast(ops.argmin(beyond, axis=1), "int32")
        low = ops.where(end < 0, ops.min(beyond, axis=1), low)
        seen = ops.logical_or(seen, ops.logical_and(going, _at(column, columns)))
        owner = ops.squeeze(_of(owners, column), 1)
        here = ops.where(ops.logical_and(end < 0, owner >= 0), owner, here)
        end = ops.where(ops.logical_and(end < 0, owner < 0), column, end)
        return seen_rows, seen, low, shortest, path, end, here

    start = (
        ops.zeros((batch, rows), "bool"),
        ops.zeros((batch, columns), "bool"),
        ops.zeros((batch,), "float32"),
        ops.full((batch, columns), float("inf"), "float32"),
        ops.full((batch, columns), -1, "int32"),
        ops.where(active, -1, 0),
        ops.zeros((batch,), "int32") + row,
    )
    return ops.while_loop(lambda *state: ops.any(state[5] < 0), lambda *state: visit(state), start)[:-1]


def _turn(path, end, row, active, owners, chosen):
    """Assigns to each row on the path the column after it."""
    rows, columns = chosen.shape[1], owners.shape[1]

    def step(going, column, owners, chosen):
        here = ops.squeeze(_of(path, column), 1)
        after = ops.squeeze(_of(chosen, ops.maximum(here, 0)), 1)
        go = ops.expand_dims(going, 1)
        owners = ops.where(ops.logical_and(go, _at(column, columns)), here[:, None], owners)
        chosen = ops.where(ops.logical_and(go, _at(here, rows)), column[:, None], chosen)
        going = ops.logical_and(going, here != row)
        return going, ops.where(going, after, column), owners, chosen

    return ops.while_loop(lambda going, *_: ops.any(going), step, (active, end, owners, chosen))[2:]


def _at(index, size):
    """Returns booleans, `(batch, size)`, true at each `index`, `(batch,)`."""
    return ops.arange(size, dtype="int32") == index[:, None]


def _of(values, index):
    """Returns the values, `(batch, size)`, at each `index`, `(batch,)`, as `(batch, 1)`."""
    return rows_of(values, index[:, None])
