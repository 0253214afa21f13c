import numpy as np


def logits(model):
    """Returns what a model says of four images."""
    images = np.random.default_rng(1).integers(0, 256, (4, *model.input_shape[1:])).astype("float32")
    return model.predict(images, verbose=0)
