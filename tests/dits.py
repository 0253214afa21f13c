"""A small DiT with random weights, and inputs for it."""

import numpy as np

import keras_vit

SIZES = dict(variant=None, image_size=(8, 12), channels=1, patch_size=4, width=16, depth=2, num_heads=2, num_classes=3)


def small(random=True, **options):
    """Returns a DiT of 8 x 12 gray pixels and three classes that gives velocities."""
    metadata = {"gives": {"head": "velocity"}, "labels": ["cat", "dog", "7"]}
    model = keras_vit.dit(**{**SIZES, "metadata": metadata, **options})
    rng = np.random.default_rng(0)
    for weight in model.weights if random else ():
        weight.assign(np.asarray(weight) + rng.normal(0, 0.2, weight.shape))
    return model


def given(count=2):
    """Returns inputs for it."""
    rng = np.random.default_rng(1)
    labels = np.arange(count, dtype="int32") % 4
    images = rng.normal(size=(count, 8, 12, 1)).astype("float32")
    return {"images": images, "times": rng.random(count, "float32"), "labels": labels}


WORDS = ["<pad>", "<end>", "<unknown>", "a", "red", "blue", "cat", "dog"]
LENGTH = 5


def of_texts(random=True, tower=None, metadata=None, **options):
    """Returns a DiT like `small` that takes texts of the table `WORDS`.

    Args:
        random: As in `small`.
        tower: Arguments of the text tower.
        metadata: Metadata of the words; by default, the table and the ids of no text.
        **options: Arguments of `dit`.
    """
    metadata = {"words": WORDS, "empty": [1, 0, 0, 0, 0]} if metadata is None else metadata
    sizes = dict(vocabulary=len(WORDS), length=LENGTH, width=12, depth=1, num_heads=2, end=1)
    text = keras_vit.text_tower(**{**sizes, "metadata": metadata, **(tower or {})})
    return small(random, **{"text": text, "metadata": {"gives": {"head": "velocity"}}, **options})


def given_texts():
    """Returns inputs for it: "a red cat", "blue", and no text."""
    ids = np.array([[3, 4, 6, 1, 0], [5, 1, 0, 0, 0], [1, 0, 0, 0, 0]], "int32")
    return {name: values for name, values in given(3).items() if name != "labels"} | {"texts": ids}
