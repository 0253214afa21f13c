"""Folders of images and depth, and a small model of depth, for tests."""

import functools

import numpy as np
from PIL import Image

import keras_vit

SIZES = ((20, 24), (16, 16), (30, 18))


def folder(path, count=12):
    """Writes images whose brightness is their depth, and the depth in files of every kind, with holes."""
    rng = np.random.default_rng(0)
    for part in ("images", "depth"):
        (path / part).mkdir(parents=True)
    for i in range(count):
        rows, columns = np.mgrid[: SIZES[i % 3][0], : SIZES[i % 3][1]]
        depth = 1 + 4 * (rng.uniform(0.2, 1) * rows / rows.max() + rng.uniform(0, 1) * columns / columns.max()) / 2
        image = np.clip(50 * depth, 0, 255).astype("uint8")[..., None].repeat(3, -1)
        depth[:3, :3] = np.nan if i % 2 else 0
        Image.fromarray(image).save(path / "images" / f"{i}.png")
        kind = ("float32", "float64", "float16", None)[i % 4]
        if kind:
            np.save(path / "depth" / f"{i}.npy", depth.astype(kind))
        else:
            Image.fromarray((1000 * np.nan_to_num(depth)).astype("uint16")).save(path / "depth" / f"{i}.png")
    return path


@functools.cache
def small():
    return keras_vit.Depth().model(
        variant=None, image_size=16, patch_size=8, width=8, depth=4, num_heads=2, mlp_dim=8, pooling="none"
    )
