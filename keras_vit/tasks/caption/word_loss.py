"""The loss of a model that generates texts."""

import keras
from keras import ops

from keras_vit.utils.configured import Loss

NONE = -1  # the id of padding in the targets


@keras.saving.register_keras_serializable(package="keras_vit")
class WordLoss(Loss):
    """Cross-entropy of the next words, the mean over the words of an image.

    Args:
        label_smoothing: Share of each label that is spread evenly over all words, as BLIP is trained with 0.1.

    Call arguments:
        y_true: Ids of the words, `(batch, words)`, -1 as padding.
        y_pred: `(batch, words, vocabulary)`, logits.

    Returns:
        `(batch,)`, the loss of each image.
    """

    def __init__(self, label_smoothing=0.0, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.label_smoothing = label_smoothing

    def call(self, y_true, y_pred):
        there = ops.cast(y_true > NONE, y_pred.dtype)
        words = ops.cast(ops.maximum(y_true, 0), "int32")
        logs = ops.log_softmax(y_pred, axis=-1)
        own = ops.take_along_axis(logs, words[..., None], axis=-1)[..., 0]  # (batch, words)
        own = own * (1 - self.label_smoothing) + ops.mean(logs, axis=-1) * self.label_smoothing
        return -ops.sum(own * there, axis=-1) / ops.maximum(ops.sum(there, axis=-1), 1)
