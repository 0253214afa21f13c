"""The loss of contrastive training: images against texts."""

import keras
from keras import ops

from keras_vit.utils import checks
from keras_vit.utils.configured import Loss

KINDS = ("softmax", "sigmoid")


@keras.saving.register_keras_serializable(package="keras_vit")
class PairLoss(Loss):
    """Contrastive loss between all images and all texts of a batch.

    `"softmax"` is the mean of two cross-entropies, of an image among the texts and of a text among the images: CLIP
    (Radford et al. 2021, arXiv:2103.00020, figure 3). `"sigmoid"` is a binary cross-entropy for each image and text,
    summed over the texts: SigLIP (Zhai et al. 2023, arXiv:2303.15343, section 3.2).

    Images with equal texts are positives of each other's text: in a batch with "a red car" twice, both images match
    both texts. The softmax target is divided equally among them.

    The loss depends on the whole batch. A part of it, as in gradient accumulation or on a replica of TensorFlow's
    MirroredStrategy, is a batch with fewer negatives. The loss has no weights. Scale and bias are weights of the
    model's `Similarity`, which with `pairs=True` puts them into `y_pred`.

    Args:
        kind: `"softmax"` or `"sigmoid"`.

    Call arguments:
        y_true: Ids of the texts, `(batch, length)`; or of several texts per image, `(batch, texts, length)`, where two
            images match if one of their texts is equal at the same index; or other integers that are equal for matching
            pairs, such as the number of the image. All must be below 16,777,216: Keras casts them to float32.
        y_pred: `(batch, 2, channels)`. The logit of an image and a text is the dot product of the image's first row and
            the text's second row, in float32 under any precision policy.

    Returns:
        `(batch,)`, the loss of each image and its text.

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
