"""The smallest recipe that trains."""

import keras_vit
from keras_vit import config

SMALL = {"model.width": 16, "model.depth": 1, "model.mlp_dim": 32, "model.num_heads": 2, "optim.xla": False}


def small():
    return config.override(config.smoke(keras_vit.load_recipe("digits")), SMALL)
