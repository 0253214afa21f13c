"""The loss of pairs of an image and a text."""

import keras
from keras import ops

from keras_vit.utils import checks
from keras_vit.utils.configured import Loss

KINDS = ("softmax", "sigmoid")


@keras.saving.register_keras_serializable(package="keras_vit")
class PairLoss(Loss):
    """Compares every image of a batch with every text, and wants the logits of its own pairs above the others.

    `"softmax"` is the mean of two cross-entropies, of an image among the texts and of a text among the images: CLIP
    (Radford et al. 2021, arXiv:2103.00020, figure 3). `"sigmoid"` asks of each pair whether it belongs together, and
    sums over the texts: SigLIP (Zhai et al. 2023, arXiv:2303.15343, section 3.2).

    Pairs whose texts are equal belong together: in a batch with "a red car" twice, both images fit both texts. Softmax
    shares its target equally among them.

    The loss depends on the whole batch: parts of it, as in accumulated gradients and on the replicas of TensorFlow's
    MirroredStrategy, are batches of fewer negatives. It has no weights. Scale and bias are weights of the model's
    `Similarity`, which with `pairs=True` puts them into `y_pred`.

    Args:
        kind: `"softmax"` or `"sigmoid"`.

    Call arguments:
        y_true: Ids of the texts, `(batch, length)`; or of several that stand for each, `(batch, texts, length)`, of
            which one is enough, in the same place; or other integers that are equal where pairs belong together, such
            as the number of the image where it comes with several texts. Below 16,777,216: Keras makes them float32.
        y_pred: `(batch, 2, channels)`. The logit of an image and a text is the product of the image's first row with
            the text's second row. It is computed in float32, whatever the model's precision.

    Returns:
        `(batch,)`, one number for each image and its text.

    Raises:
        ValueError: For another kind, or tensors of other shapes.
    """

    def __init__(self, kind="softmax", **kwargs):
        super().__init__(**{"dtype": "float32", **kwargs})
        checks.one_of("kind", kind, KINDS)
        self.kind = kind

    def call(self, y_true, y_pred):
        if len(y_true.shape) not in (2, 3) or len(y_pred.shape) != 3 or y_pred.shape[1] != 2:
            raise ValueError(
                "Pairs must be ids (batch, length) and rows of an image and a text (batch, 2, channels). "
                f"Received: shapes {tuple(y_true.shape)} and {tuple(y_pred.shape)}"
            )
        logits = ops.matmul(y_pred[:, 0], ops.transpose(y_pred[:, 1]))  # (images, texts)
        equal = ops.all(ops.equal(y_true[:, None], y_true[None]), axis=-1)  # (images, texts[, texts of each])
        equal = equal if len(equal.shape) == 2 else ops.any(equal, axis=-1)
        if self.kind == "sigmoid":
            return -ops.sum(ops.log_sigmoid(ops.where(equal, logits, -logits)), axis=1)
        equal = ops.cast(equal, logits.dtype)
        each_way = [
            ops.sum(equal / ops.sum(equal, axis=axis, keepdims=True) * ops.log_softmax(logits, axis=axis), axis=axis)
            for axis in (1, 0)
        ]
        return -(each_way[0] + each_way[1]) / 2
