"""Two small towers of images and texts with random weights."""

import keras
import numpy as np

import keras_vit

WORDS = ["<pad>", "<end>", "a", "photo", "of", "red", "green", "cat", "dog", ".", "car", "<unknown>"]
LENGTH = 8


@keras.saving.register_keras_serializable(package="tests")
class Similarity(keras.layers.Layer):
    """Logits of pairs: scaled cosines, with a bias or without."""

    def __init__(self, bias=False, **kwargs):
        super().__init__(**kwargs)
        self.bias = bias
        self.logit_scale = self.add_weight(name="logit_scale", shape=(), initializer="zeros")
        if bias:
            self.logit_bias = self.add_weight(name="logit_bias", shape=(), initializer="zeros")

    def get_config(self):
        return {**super().get_config(), "bias": self.bias}

    def call(self, image, text):
        image, text = (keras.ops.normalize(each, axis=-1, epsilon=1e-12) for each in (image, text))
        logits = keras.ops.exp(self.logit_scale) * keras.ops.matmul(image, keras.ops.transpose(text))
        return logits + getattr(self, "logit_bias", 0)


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
    ids = keras.Input((LENGTH,), dtype="int32", name="texts")
    table = keras.layers.Embedding(len(WORDS), 6, name="words")
    table.metadata = {"words": words}
    x = keras.layers.Dense(image.output_shape[-1], name="projection")(keras.layers.Flatten(name="pool")(table(ids)))
    text = keras.Model(ids, x, name="text")
    inputs = {"images": image.inputs[0], "texts": ids}
    model = keras.Model(inputs, Similarity(bias is not None, name="similarity")(image(inputs["images"]), text(ids)))
    rng = np.random.default_rng(seed)
    for tower in (image, text):
        tower.set_weights([rng.normal(0, 0.5, weight.shape) for weight in tower.get_weights()])
    similarity = model.get_layer("similarity")
    similarity.logit_scale.assign(1.5)
    if bias is not None:
        similarity.logit_bias.assign(bias)
    return model
