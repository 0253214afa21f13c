"""The attention mask for padded texts."""

import keras
from keras import ops

from keras_vit.layers.base import Layer
from keras_vit.utils.typed import Whole


@keras.saving.register_keras_serializable(package="keras_vit")
class PaddingMask(Layer):
    """Computes an attention mask from ids: padding is masked.

    The output is the `attention_mask` of a `TransformerBlock` whose tokens are the words, followed by tokens that are
    never padding, such as patches.

    Args:
        pad: Id of padding.
        others: Number of tokens after the words.

    Call arguments:
        ids: Tensor of ids, integers.

    Input shape:
        `(batch, words)`.

    Output shape:
        `(batch, 1, 1, words + others)`, booleans: `True` where attention is allowed.

    Raises:
        ValueError: If `pad` or `others` is no integer of at least 0.

    Example:

    >>> PaddingMask(pad=0, others=2)(keras.ops.array([[5, 7, 0]]))[0, 0, 0]
    array([ True,  True, False,  True,  True])
    """

    def __init__(self, pad: Whole = 0, others: Whole = 0, **kwargs):
        super().__init__(autocast=False, **kwargs)  # Keras would cast ids that come as floats to the policy's
        self.pad = pad
        self.others = others

    def call(self, ids):
        of_words = ops.not_equal(ops.cast(ids, "int32"), self.pad)
        of_others = ops.ones((ops.shape(ids)[0], self.others), "bool")
        return ops.concatenate([of_words, of_others], axis=1)[:, None, None]  # (batch, 1, 1, words + others)

    def compute_output_shape(self, input_shape):
        batch, words = input_shape
        return batch, 1, 1, words and words + self.others

    def compute_output_spec(self, ids):
        return keras.KerasTensor(self.compute_output_shape(ids.shape), "bool")
