"""A small model with a class and a mask for each query, for tests."""

import functools

import numpy as np

from keras_vit.models.map_heads import with_head
from keras_vit.models.query_encoder import query_encoder

ROW = {
    "kind": "segments", "blocks": (2,), "normed": True, "last": 1, "units": 3, "queries": 4, "upscales": 1,
    "gelu": "exact", "epsilon": 1e-6,
}  # fmt: skip
SIZES = dict(width=8, depth=3, num_heads=2, patch_size=4, tokens={"class_token": True, "registers": 1})


def build(image_size=16, metadata=None, dtype=None, **row):
    """Returns a model with random weights."""
    row = ROW | row
    options = {"image_size": image_size, "metadata": metadata, "dtype": dtype, **SIZES}
    model = with_head(query_encoder(row["queries"], row["last"], **options), row)
    rng = np.random.default_rng(0)
    model.set_weights([value + 0.2 * rng.normal(size=value.shape) for value in model.get_weights()])
    return model


@functools.cache
def small():
    return build()
