"""Layers that are built as frozen."""

from keras_vit.keras_private import sublayers


def freeze_parts(layer):
    """Freezes the parts that a frozen layer has just built, as `layer.trainable = False` does for those that exist.

    The configuration of a layer has its own `trainable` alone: without this, a copy or a saved file would train again.
    """
    if not layer.trainable:
        for part in sublayers(layer, include_self=False):
            part.trainable = False
