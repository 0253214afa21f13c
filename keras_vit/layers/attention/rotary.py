"""Rotary positions of patches."""

import inspect
import math

import keras
import numpy as np
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils import checks
from keras_vit.utils.typed import AboveZero, Number, Positive, Switch, Whole

ROTARY = {  # options of `RotaryPositions` by the models that have them
    # Siméoni et al. 2025 (arXiv:2508.10104), section 3.2
    "dinov3": {"base": 100.0, "centered": True},
    # Fang et al. 2023 (arXiv:2303.11331); its code stretches every grid to 16 x 16
    "eva02": {"base": 10000.0, "centered": False, "reference": 16, "interleaved": True},
    # Heo et al. 2024 (arXiv:2403.13298), "axial"
    "rope-vit": {"base": 100.0, "centered": False, "columns_first": True, "interleaved": True},
    # Heo et al. 2024, "mixed"
    "rope-vit-mixed": {"base": 10.0, "centered": False, "columns_first": True, "interleaved": True, "learned": True},
}

OPTIONS = ("base", "centered", "offset", "reference", "columns_first", "interleaved", "learned")


@keras.saving.register_keras_serializable(package="keras_vit")
class RotaryPositions(Layer):
    """Rotates queries or keys by angles that depend on the row and column of their patch (RoPE).

    The product of a query and a key then depends on their distance. Su et al. 2021 (arXiv:2104.09864); for images Heo
    et al. 2024 (arXiv:2403.13298), section 3.2, "axial": half of the pairs of channels rotate by the row, half by the
    column. Pair `f` of an axis with `head_dim / 4` pairs rotates by `coordinate * base ** (-4 * f / head_dim)`. In
    "mixed", section 3.3, each pair of each head rotates by both coordinates, times learned frequencies. Prefix tokens
    are not rotated. No weight depends on the grid, so that weights can be used with any grid.

    Args:
        grid: `(rows, columns)` of the patches.
        num_prefix: Number of tokens before the first patch.
        base: Base of the powers above; a larger base gives lower frequencies.
        centered: Whether a coordinate is 2 pi times the position of the patch's center, from -1 to 1 along each axis of
            the image, as in DINOv3; else it is the index of the row or column.
        offset: Number added to the index.
        reference: Number of rows and columns to which every grid is scaled, so that the same place in an image has the
            same angles on every grid; `None` for no scaling.
        columns_first: Whether the first half of the pairs rotates by the column.
        interleaved: Whether a pair is two neighboring channels; else channels `c` and `c + head_dim / 2`.
        learned: Whether frequencies are learned; they start with a random direction for each head.

    Call arguments:
        x: Tensor of queries or keys.

    Input shape:
        `(batch, num_prefix + patches, heads, head_dim)`.

    Output shape:
        Same as the input shape.

    Raises:
        ValueError: For an argument outside its range, another number of tokens, or a `head_dim` that 4 does not divide.

    Example:

    >>> RotaryPositions((7, 7), num_prefix=1)(keras.ops.zeros((2, 50, 3, 64))).shape
    (2, 50, 3, 64)
    """

    def __init__(
        self,
        grid: tuple[int, int],
        *,
        num_prefix: Whole = 0,
        base: AboveZero = 100.0,
        centered: Switch = True,
        offset: Number = 0.0,
        reference: Positive | None = None,
        columns_first: Switch = False,
        interleaved: Switch = False,
        learned: Switch = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.grid = checks.pair("grid", grid)
        if centered and (offset or reference is not None):
            raise ValueError(
                "Centered coordinates have no offset and no reference. "
                f"Received: offset={offset}, reference={reference}, centered=True"
            )
        self.num_prefix = num_prefix
        self.base = base
        self.centered = centered
        self.offset = offset
        self.reference = reference
        self.columns_first = columns_first
        self.interleaved = interleaved
        self.learned = learned

    def build(self, input_shape):
        *_, tokens, heads, head_dim = input_shape
        patches = math.prod(self.grid)
        if tokens is not None and tokens != self.num_prefix + patches:
            raise ValueError(
                f"There must be {self.num_prefix} + {patches} tokens. Received: input_shape={tuple(input_shape)}"
            )
        if head_dim % 4:
            raise ValueError(f"Rotary positions need heads of a multiple of 4 channels. Received: {head_dim}")
        channels = np.arange(head_dim)
        self.distance = 1 if self.interleaved else head_dim // 2  # between the channels of a pair
        self.firsts = channels % 2 == 0 if self.interleaved else channels < head_dim // 2
        if self.learned:
            shape = (2, heads, head_dim // 2)
            self.frequencies = self.add_weight(
                name="frequencies", shape=shape, initializer=self._directions, autocast=False
            )
        else:
            zeros = np.zeros(head_dim // 4)
            powers = self.base ** (-4 * np.arange(head_dim // 4) / head_dim)
            angles = self._angles([np.concatenate([powers, zeros])[None], np.concatenate([zeros, powers])[None]])
            self.factors = [factor.astype("float32") for factor in self._factors(angles, np)]

    def _directions(self, shape, dtype=None):
        """Returns initial frequencies, `(2, heads, head_dim / 2)`: the powers, along and across a random direction."""
        powers = self.base ** (-2 * ops.arange(shape[-1] // 2, dtype="float32") / shape[-1])
        direction = keras.initializers.RandomUniform(0, 2 * math.pi)((shape[1], 1))
        both = [[powers * part(direction + turn) for turn in (0, math.pi / 2)] for part in (ops.cos, ops.sin)]
        return ops.cast(ops.stack([ops.concatenate(axis, axis=-1) for axis in both]), dtype)

    def _angles(self, frequencies):
        """Returns the angles of patches, `(patches, heads or 1, head_dim / 2)`, from the frequencies of both axes."""
        places = np.meshgrid(*map(self._coordinates, self.grid), indexing="ij")
        places = [place.reshape(-1, 1, 1) for place in (places[::-1] if self.columns_first else places)]
        first, second = (ops.convert_to_tensor(place, "float32") for place in places) if self.learned else places
        return first * frequencies[0] + second * frequencies[1]

    def _factors(self, angles, ops):
        """Returns the factors of a channel and of its pair partners, three of `(tokens, heads or 1, head_dim)`."""
        angles = ops.pad(angles, ((self.num_prefix, 0), (0, 0), (0, 0)))
        pairs = ops.repeat(angles, 2, axis=-1) if self.interleaved else ops.concatenate([angles, angles], axis=-1)
        sin = ops.sin(pairs)
        return ops.cos(pairs), ops.where(self.firsts, -sin, 0.0), ops.where(self.firsts, 0.0, sin)

    def _coordinates(self, count):
        numbers = np.arange(count, dtype="float64")
        if self.centered:
            return 2 * math.pi * (2 * (numbers + 0.5) / count - 1)
        return (numbers + self.offset) * (self.reference / count if self.reference else 1)

    def call(self, x):
        learned = ops.cast(self.frequencies, "float32") if self.learned else None
        factors = self.factors if learned is None else self._factors(self._angles(learned), ops)
        turned, (cos, of_second, of_first) = ops.cast(x, "float32"), map(ops.convert_to_tensor, factors)
        if not self.interleaved:  # both partners are half of the channels away
            return ops.cast(turned * cos + _rolled(turned, self.distance) * (of_second + of_first), x.dtype)
        seconds, firsts = _rolled(turned, self.distance), _rolled(turned, -self.distance)
        return ops.cast(turned * cos + seconds * of_second + firsts * of_first, x.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape


def _rolled(x, count):
    """Rolls the last axis by `count` to the left, by slices, since runtimes lack an operator for it."""
    return ops.concatenate([x[..., count:], x[..., :count]], axis=-1)


def rotary_options(rotary):
    """Returns options of `RotaryPositions`, a dictionary, from a name in `ROTARY` or a dictionary.

    Raises:
        ValueError: For an unknown name or option.
    """
    if not isinstance(rotary, dict):
        checks.one_of("rotary", rotary, tuple(ROTARY))
        return ROTARY[rotary]
    checks.options("rotary", rotary, OPTIONS)
    return rotary


def rotary_argument(options):
    """Inverts `rotary_options`: returns a name in `ROTARY` if it has these options, else a dictionary; or `None`."""
    if options is None:
        return None
    full = {name: options.get(name, default) for name, default in DEFAULTS.items()}
    name = next((name for name, row in ROTARY.items() if DEFAULTS | row == full), None)
    return name or {name: value for name, value in full.items() if value != DEFAULTS[name]}


DEFAULTS = {name: inspect.signature(RotaryPositions).parameters[name].default for name in OPTIONS}
