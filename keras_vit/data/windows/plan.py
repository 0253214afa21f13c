"""Which crops an epoch has: how many of each picture, and where they may begin."""

import dataclasses
import math

import numpy as np

NUMBERS = 4  # random numbers of a crop: what it is drawn around, which of these, and its place along both sides


@dataclasses.dataclass(frozen=True)
class Plan:
    """How many crops of each picture an epoch has, and around what they are drawn.

    A crop is drawn anywhere, kind 0, or around a region of one of several kinds, such as the objects of a class.

    Attributes:
        size: `(height, width)` of a crop, in pixels of the pictures.
        shapes: `(height, width)` of each picture, int64 `(pictures, 2)`.
        quotas: Crops of each picture in an epoch, int64 `(pictures,)`.
        chances: Of each picture the probability that a crop is of one of the kinds before, `(pictures, kinds)`.
        ends: End of the regions of each picture and kind among `regions`, `(pictures, kinds)`; as `chances` they follow
            each other, and kind 0 has none.
        regions: Top, left, bottom and right of all regions in pixels, `(regions, 4)`.
    """

    size: tuple[int, int]
    shapes: np.ndarray
    quotas: np.ndarray
    chances: np.ndarray
    ends: np.ndarray
    regions: np.ndarray

    def starts(self, pictures, numbers):
        """Returns where crops begin, int64 `(crops, 2)`, top and left.

        An object that is smaller than a crop is whole inside, at any place of it; of a larger one the crop is inside.

        Args:
            pictures: The picture of each crop, `(crops,)`.
            numbers: Random numbers of each, in [0, 1), `(crops, NUMBERS)`.
        """
        kinds = (numbers[:, :1] >= self.chances[pictures]).sum(axis=1) - 1
        flat = pictures * self.chances.shape[1] + kinds
        ends = self.ends.reshape(-1)
        first = np.where(flat > 0, ends[flat - 1], 0)
        chosen = first + (numbers[:, 1] * (ends[flat] - first)).astype("int64")
        size, room = np.array(self.size), np.maximum(self.shapes[pictures] - self.size, 0)
        low, high = np.zeros_like(room), room
        around = kinds > 0
        if around.any():
            regions = self.regions[chosen[around]]
            begins, ends = np.floor(regions[:, :2]), np.ceil(regions[:, 2:])
            bounds = np.sort([begins, ends - size], axis=0).astype("int64")
            low[around], high[around] = np.clip(bounds, 0, room[around])
        return low + (numbers[:, 2:NUMBERS] * (high - low + 1)).astype("int64")


def anywhere(size, shapes, count):
    """Returns the plan of `count` crops of each picture, drawn anywhere; sizes as in `Plan`."""
    shapes = np.array(shapes, "int64").reshape(-1, 2)
    zeros = np.zeros((len(shapes), 1))
    return Plan(size, shapes, np.full(len(shapes), count), zeros, zeros.astype("int64"), np.zeros((0, 4)))


def around(size, shapes, count, regions, weights, share):
    """Returns a plan in which crops are drawn around regions of several kinds, each kind equally often.

    An epoch has as many crops as `anywhere`. A picture has the more the more regions of rare kinds it has.

    Args:
        size, shapes, count: As in `anywhere`.
        regions: Of each picture, of each kind, an array `(regions, 4)` as in `Plan`.
        weights: How much of each kind is in each picture, such as objects or pixels, `(pictures, kinds)`; 0 where
            there are no regions.
        share: Share of the crops that are drawn anywhere, in every picture alike.
    """
    shapes, weights = np.array(shapes, "int64").reshape(-1, 2), np.array(weights, "float64")
    total, sums = count * len(shapes), weights.sum(axis=0)
    if not sums.any():
        return anywhere(size, shapes, count)
    of_kinds = weights / np.where(sums, sums, 1) / (sums > 0).sum()  # sums to 1
    expected = np.concatenate([np.full((len(shapes), 1), share / len(shapes)), (1 - share) * of_kinds], axis=1)
    quotas = _whole(expected.sum(axis=1) * total)
    chances = np.cumsum(expected, axis=1) - expected
    chances = chances / np.maximum(expected.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    counts = np.array([[0, *map(len, kinds)] for kinds in regions], "int64")
    ends = np.cumsum(counts).reshape(counts.shape)
    every = np.concatenate([np.zeros((0, 4)), *(kind for kinds in regions for kind in kinds)])
    return Plan(size, shapes, quotas, _skipping(chances, expected), ends, every)


def _skipping(chances, expected):
    """Returns chances in which a kind that is never drawn begins with the next one, and so is never chosen."""
    drawn = np.where(expected > 0, chances, np.inf)
    return np.minimum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]


def _whole(amounts):
    """Returns amounts, whose sum is whole, as whole numbers of that sum: the largest remainders are rounded up."""
    whole = np.floor(amounts).astype("int64")
    missing = round(amounts.sum()) - whole.sum()
    whole[np.argsort(whole - amounts, kind="stable")[:missing]] += 1
    return whole


def grid(shape, size):
    """Returns the starts of a grid of crops that covers a picture, int64 `(crops, 2)`: as few as can, evenly spread."""
    starts = [
        np.linspace(0, max(side - own, 0), math.ceil(side / own)).round().astype("int64")
        for side, own in zip(shape, size)
    ]
    return np.stack(np.meshgrid(*starts, indexing="ij"), axis=-1).reshape(-1, 2)
