"""Windows of an image's grid: in each, tokens attend to themselves alone."""

import numpy as np
from keras import ops

from keras_vit.utils import checks

OPTIONS = ("count", "grid", "num_prefix")


def check(windows, **positions):
    """Raises ValueError unless windows divide the grid, and the prefix tokens stand there once for each window.

    Args:
        windows: As in `MultiHeadSelfAttention`; `None` is right.
        **positions: Arguments of positions in attention, which windows do not have.
    """
    if windows is None:
        return
    if used := [f"{name}={value!r}" for name, value in positions.items() if value is not None]:
        raise ValueError(f"Windows have no rotary or relative positions. Received: {', '.join(used)}")
    checks.options("windows", windows, OPTIONS)
    count, grid, prefix = (windows[name] for name in OPTIONS)
    checks.positive(**{"windows.count": count})
    if any(side % count for side in grid) or prefix % count**2:
        raise ValueError(
            f"{count} x {count} windows must divide the grid, and each needs its own prefix tokens. "
            f"Received: grid={tuple(grid)}, num_prefix={prefix}"
        )


def windows_of_blocks(count, whole_blocks, depth, places):
    """Returns the windows of each block, a list of dictionaries; `None` for a block in which all tokens see all.

    Args:
        count: Number of windows a side.
        whole_blocks: Numbers of the blocks without windows, from 0.
        depth: Number of blocks.
        places: Dictionary of `grid` and `num_prefix`; see `MultiHeadSelfAttention`.

    Raises:
        ValueError: For a block that is none.
    """
    whole = checks.sequence("whole_blocks", whole_blocks)
    if wrong := [i for i in whole if isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < depth]:
        raise ValueError(
            f"`whole_blocks` must be numbers of blocks from 0 to {depth - 1}. Received: {checks.shown(wrong[0])}"
        )
    return [None if count == 1 or i in whole else {"count": count, **places} for i in range(depth)]


def cut(x, count, grid, num_prefix):
    """Cuts tokens into windows.

    Args:
        x: Tensor, `(batch, num_prefix + rows * columns, width)`: the prefix tokens of each window, then the patches by
            row.
        count: Number of windows a side.
        grid: `(rows, columns)` of the patches.
        num_prefix: Number of all prefix tokens.

    Returns:
        Tensor, `(batch * count**2, tokens of a window, width)`, windows by row.
    """
    (rows, columns), width = (side // count for side in grid), x.shape[-1]
    patches = ops.reshape(x[:, num_prefix:], (-1, rows, count, columns * width))
    patches = ops.reshape(ops.transpose(patches, (0, 2, 1, 3)), (-1, rows * columns, width))
    if not num_prefix:
        return patches
    return ops.concatenate([ops.reshape(x[:, :num_prefix], (-1, num_prefix // count**2, width)), patches], axis=1)


def joined(x, count, grid, num_prefix):
    """Returns the tokens of whole images, the inverse of `cut`."""
    (rows, columns), width, own = (side // count for side in grid), x.shape[-1], num_prefix // count**2
    patches = ops.reshape(x[:, own:], (-1, count, rows, columns * width))
    patches = ops.reshape(ops.transpose(patches, (0, 2, 1, 3)), (-1, grid[0] * grid[1], width))
    return ops.concatenate([ops.reshape(x[:, :own], (-1, num_prefix, width)), patches], axis=1) if own else patches


def within(attention_mask, count, grid, num_prefix):
    """Returns a mask of attention, as in `MultiHeadSelfAttention`, or `None`, which keeps tokens to their window."""
    near = ops.convert_to_tensor(mask(count, grid, num_prefix))
    if attention_mask is None:
        return near
    given = ops.cast(attention_mask, "bool")
    return ops.logical_and(near, ops.expand_dims(given, 1) if len(given.shape) == 3 else given)


def mask(count, grid, num_prefix):
    """Returns which tokens are in the same window, a boolean array, `(1, 1, tokens, tokens)`."""
    rows, columns = np.indices(grid).reshape(2, -1) * count // np.array(grid)[:, None]
    numbers = np.repeat(np.arange(count**2), num_prefix // count**2)
    numbers = np.concatenate([numbers, rows * count + columns])
    return (numbers[:, None] == numbers)[None, None]
