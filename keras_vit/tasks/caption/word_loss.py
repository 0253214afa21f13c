"""The loss of a model that writes texts."""

import keras
from keras import ops

from keras_vit.utils.configured import Loss

NONE = -1  # instead of a word that is not to be written


@keras.saving.register_keras_serializable(package="keras_vit")
class WordLoss(Loss):
    """Cross-entropy of each next word, the mean over an image's words.

    Args:
        label_smoothing: Share of each label that is spread evenly over all words, as BLIP is trained with 0.1.

    Call arguments:
        y_true: Ids of the words, `(batch, length)`; -1 where there is none.
        y_pred: `(batch, length, vocabulary)`, logits.

    Returns:
        `(batch,)`.
    """

    def __init__(self, label_smoothing=0.0, **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        self.label_smoothing = label_smoothing

    def call(self, y_true, y_pred):
        there = ops.cast(y_true > NONE, y_pred.dtype)
        words = ops.cast(ops.maximum(y_true, 0), "int32")
        logs = ops.log_softmax(y_pred, axis=-1)
        own = ops.take_along_axis(logs, words[..., None], axis=-1)[..., 0]  # (batch, length)
        own = own * (1 - self.label_smoothing) + ops.mean(logs, axis=-1) * self.label_smoothing
        return -ops.sum(own * there, axis=-1) / ops.maximum(ops.sum(there, axis=-1), 1)
