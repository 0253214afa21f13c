"""Loss of a box for each patch with a score for each class alone."""

import keras
from keras import ops

from keras_vit.tasks.detect.group_loss import GAMMA, SetsLoss
from keras_vit.tasks.detect.set_loss import objects_first


@keras.saving.register_keras_serializable(package="keras_vit")
class OpenLoss(SetsLoss):
    """OWL-ViT's loss: each object is matched with the box of one patch, with the smallest total cost.

    Minderer et al. 2022 (arXiv:2205.06230), section 3.2 and appendix A1.3: DETR's bipartite matching, with a focal loss
    (alpha 0.3, gamma 2) in place of the softmax: classes do not compete, and there is no class "none". The cost of a
    match is the focal loss of the object's class if it is true, less that if it is not, and two distances of the boxes,
    L1 (of center, height and width) and generalized IoU. The loss is the sum of the focal losses of all patches and
    classes, and the distances of matched boxes, divided by the objects of the image, as in the authors' code.

    Args:
        cost: Weight of the focal cost in matching.
        l1: Weight of the L1 distance.
        giou: Weight of one minus the generalized IoU.

    Call arguments:
        y_true: As in `GroupLoss`.
        y_pred: `(batch, patches, 4 + classes)`: top, left, bottom and right as shares of the image, and the logits of
            the classes.

    Returns:
        `(batch,)`, the loss of each image.
    """

    alpha = 0.3

    def __init__(self, cost=1.0, l1=1.0, giou=1.0, **kwargs):
        super().__init__(cost, l1, giou, **kwargs)

    def call(self, y_true, y_pred):
        y_true = objects_first(ops.cast(y_true, "float32"), y_pred.shape[1])
        return self.of_objects(y_true, y_pred[:, None, None])

    def divisor(self, objects):
        return ops.maximum(objects, 1)

    def _of_classes(self, logits, labels, mine, overlap):
        truth = ops.einsum("noq,noc->nqc", mine, ops.one_hot(labels, logits.shape[-1], dtype="float32"))
        shares = ops.sigmoid(logits)
        true = self.alpha * (1 - shares) ** GAMMA * ops.log_sigmoid(logits)
        false = (1 - self.alpha) * shares**GAMMA * ops.log_sigmoid(-logits)
        return -ops.sum(truth * true + (1 - truth) * false, axis=(1, 2))
