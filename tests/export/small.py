"""A small model, and pixels for it."""

import numpy as np

from keras_vit import vit

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 12, 8, 3)).astype("uint8")
CALIBRATION = np.random.default_rng(0).integers(0, 256, (40, 12, 8, 3)).astype("uint8")


def tiny(**options):
    """Returns a ViT of one block whose logits differ from image to image."""
    model = vit("mu/4", image_size=(12, 8), num_classes=4, **options)
    model.get_layer("head").kernel.assign(np.random.default_rng(1).normal(size=model.get_layer("head").kernel.shape))
    return model


def shaken(model):
    """Returns the model with noise on its weights, so that none is one or zero."""
    rng = np.random.default_rng(1)
    for variable in model.trainable_variables:
        variable.assign(np.asarray(variable) + rng.normal(size=variable.shape) * 0.2)
    return model
