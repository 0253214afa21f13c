"""The models that are measured: one shape a row, the same for all."""

from typing import NamedTuple


class Shape(NamedTuple):
    """What a model is built by."""

    image: int
    channels: int
    patch: int
    width: int
    depth: int
    heads: int
    mlp: int
    classes: int
    pooling: str = "token"
    variant: str | None = None  # of a model that only some have
    mean: str = ""  # what it is


SHAPES = {
    #               image ch. patch width depth heads mlp  classes
    "mnist":     Shape(28, 1, 4, 96, 6, 4, 192, 10, "gap", mean="the recipe"),
    "cifar10":   Shape(32, 3, 4, 192, 6, 3, 768, 10, "gap", mean="Ti's width on patches of 4"),
    "Ti/16":     Shape(224, 3, 16, 192, 12, 3, 768, 1000),
    "S/16":      Shape(224, 3, 16, 384, 12, 6, 1536, 1000),
    "B/16":      Shape(224, 3, 16, 768, 12, 12, 3072, 1000),
    "B/16 384":  Shape(384, 3, 16, 768, 12, 12, 3072, 1000),
    "R26+S/32":  Shape(224, 3, 1, 384, 12, 6, 1536, 1000, variant="R26+S/32"),
}  # fmt: skip
