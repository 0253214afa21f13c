"""Small models, and pixels for them."""

import numpy as np

from keras_vit import (
    Classify,
    Detect,
    Regress,
    Restore,
    Segment,
    merge_tokens,
    text_tower,
    two_towers,
    vilt,
    vit,
)

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 12, 8, 3)).astype("uint8")
CALIBRATION = np.random.default_rng(0).integers(0, 256, (40, 12, 8, 3)).astype("uint8")
WORDS = ["<pad>", "<end>", "<unknown>", *"abcdefg"]
TABLE = {"vocabulary": 10, "length": 6, "metadata": {"words": WORDS}}


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


def of_task(task, **options):
    """Returns a task's model with noise on its weights, and images for it."""
    model = shaken(task.model(**{"variant": "mu/4", "image_size": (16, 24), "depth": 2, **options}))
    images = np.random.default_rng(0).integers(0, 256, (5, *model.input_shape[1:])).astype("uint8")
    if getattr(task, "luma", False):
        images = images[..., :1].repeat(3, -1)
    return model, images


def text():
    """Returns a small text tower."""
    return text_tower(width=16, depth=1, num_heads=2, end=1, projection=8, **TABLE)


# A model of each kind of outputs and of each kind of tokens, and images for it.
KINDS = {
    "classes": lambda: (tiny(), IMAGES),
    "points": lambda: of_task(Detect(classes=("a", "b"), most=7, head={"kind": "points", "width": 4})),
    "merged": lambda: (merge_tokens(shaken(vit("mu/4", image_size=(12, 8), num_classes=4, depth=2)), 2), IMAGES),
    "rotary": lambda: (shaken(tiny(rotary="dinov3")), IMAGES),
    "relative": lambda: (shaken(tiny(position="relative")), IMAGES),
    "set": lambda: of_task(Detect(classes=("a", "b"), most=7, head="decoder")),
    "masks": lambda: of_task(Segment(classes=("a", "b"))),
    "image": lambda: of_task(Restore(scale=2, luma=True, head_depth=1), stem=((8, 1, 1), (8, 1)), depth=1),
    "numbers": lambda: of_task(Regress(names=("a", "b"), mean=(1.0, 2.0), deviation=(3.0, 4.0))),
    "labels": lambda: of_task(Classify(classes=("a", "b", "c"), multilabel=True)),
    "embedder": lambda: (vit("mu/4", image_size=(12, 8), num_classes=None), IMAGES),
    "bfloat16": lambda: (tiny(dtype="mixed_bfloat16", block={"gelu": "exact"}), IMAGES),
}

# Models of texts, and of images and texts.
OF_TEXTS = {
    "text": lambda: shaken(text()),
    "answers": lambda: shaken(vilt("mu/4", image_size=(12, 8), num_classes=3, **TABLE)),
    "pairs": lambda: shaken(two_towers(vit("mu/4", image_size=(12, 8), num_classes=8), text(), pairs=True)),
}
