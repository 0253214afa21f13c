"""Two small towers of images and texts with random weights."""

import numpy as np

import keras_vit

WORDS = ["<pad>", "<end>", "a", "photo", "of", "red", "green", "cat", "dog", ".", "car", "<unknown>"]
LENGTH = 8


def two_towers(bias=None, head=True, words=None, seed=0):
    """Returns a model of images and texts; with a bias its probabilities are independent.

    Args:
        bias: What is added to each logit, or `None`.
        head: Whether the image tower has a projection, as CLIP's.
        words: Table of words in the model, or `None`.
        seed: Seed of all weights.
    """
    image = keras_vit.vit(
        "mu/4", image_size=(12, 8), pooling="gap", num_classes=5 if head else 0, depth=1, name="image",
        metadata={"evaluation": {"resize": "direct"}},
    )  # fmt: skip
    text = keras_vit.text_tower(
        vocabulary=len(WORDS), length=LENGTH, width=6, depth=1, num_heads=2, end=1, projection=image.output_shape[-1],
        metadata={"words": words} if words else None,
    )  # fmt: skip
    model = keras_vit.two_towers(image, text, scale=1.5, bias=bias)
    rng = np.random.default_rng(seed)
    for tower in (image, text):
        tower.set_weights([rng.normal(0, 0.5, weight.shape) for weight in tower.get_weights()])
    return model
