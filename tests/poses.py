"""A small model of heat maps, for tests."""

import functools

import keras_vit
from keras_vit.models.map_heads import with_head


@functools.cache
def small(image_size=(32, 24), keypoints=17):
    encoder = keras_vit.vit(
        None, image_size=image_size, patch_size=8, width=8, depth=1, num_heads=2, pooling="none", num_classes=0
    )
    stated = {"kind": "heatmaps", "blocks": (0,), "normed": True, "keypoints": keypoints}
    return with_head(encoder, stated)
