"""The model that is fitted for boxes and masks of queries: those of all stages."""

import keras
from keras import ops

from keras_vit.utils.typed import typed


@keras.saving.register_keras_serializable(package="keras_vit")
class InstanceLearner(keras.Model):
    """Returns the boxes, the logits of classes and those of masks of all stages of a detector with masks.

    Robinson et al. 2025 (RF-DETR, arXiv:2511.09554). Its layers are the model's.

    Args:
        model: A model with the layers `head`, a `DeformableDecoder`, and `masks`, an `InstanceMasks`, as from
            `with_head` of kind `"boxes"` with masks.

    Call arguments:
        images: Tensor of images, as the model takes them.
        training: Whether all groups of queries are computed, and dropout is on.

    Input shape:
        `(batch, height, width, channels)`.

    Output shape:
        `(batch, 1 + depth, groups, queries, 4 + classes + rows * columns)`, float32, one group but in training: of the
        first stage, then after each block, as `InstanceLoss` takes them.
    """

    @typed
    def __init__(self, model: keras.Model, **kwargs):
        super().__init__(autocast=False, **kwargs)  # pixels stay as they are
        self.dtype_policy = model.dtype_policy  # tells `compile` to scale the loss of float16
        self.model = model
        self.head = model.get_layer("head")
        self.masks = model.get_layer("masks")
        self.tokens = keras.Model(model.input, self.head.input)
        self.built = True

    @property
    def output_shape(self):
        numbers = 4 + self.head.units + self.masks.size[0] * self.masks.size[1]
        return self.model.output_shape[0], 1 + self.head.depth, 1, self.head.queries, numbers

    def call(self, images, training=None):
        tokens = self.tokens(images, training=training)
        sets, *seen = self.head(tokens, return_queries=True, return_first=True, training=training)
        queries, features, first = seen
        x = ops.concatenate([sets, self.masks(features, queries, first)], axis=-1)
        return ops.reshape(x, (-1, 1 + self.head.depth, x.shape[2] // self.head.queries, *self.output_shape[3:]))

    def get_config(self):
        return {"model": keras.saving.serialize_keras_object(self.model), "name": self.name}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        model = keras.saving.deserialize_keras_object(config["model"], custom_objects=custom_objects)
        return cls(**{**config, "model": model})
