"""Models to look into."""

import functools

import numpy as np

from keras_vit import vit

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 12, 8, 3)).astype("uint8")

KINDS = {
    "token": dict(),
    "gap": dict(pooling="gap"),
    "registers": dict(pooling="gap", tokens={"registers": 2}),
    "distilled": dict(tokens={"distilled": True, "registers": 2}),
    "both": dict(pooling="token+gap", position=None, rotary="dinov3", block={"key_bias": False}),
    "map": dict(pooling="map", dtype="mixed_bfloat16"),
    "map of all": dict(
        pooling="map", tokens={"class_token": True}, pool={"num_heads": 4, "mlp_dim": 16, "over_prefix": True}
    ),
    "hybrid": dict(stem=((8, 2), (8, 2)), variant="mu", patch_size=1),
    "last": dict(pooling="last", position="sincos2d", block={"layer_scale": 0.1, "swiglu": True}),
}
PREFIX = dict.fromkeys(KINDS, 0) | {"token": 1, "both": 1, "map of all": 1, "distilled": 4, "registers": 2, "hybrid": 1}


def tiny(variant="mu/4", **options):
    """Returns a model of three blocks, with two heads, on a grid of 3 x 2; its head is not zero."""
    model = vit(variant, image_size=(12, 8), num_classes=5, depth=3, **options)
    for weight in model.weights:
        if "head" in weight.path and weight.path.endswith("kernel"):
            weight.assign(np.random.default_rng(1).normal(size=weight.shape))
    return model


@functools.cache
def shared(kind):
    """Returns the one model of a kind, for tests that leave it as it is."""
    return tiny(**KINDS[kind])
