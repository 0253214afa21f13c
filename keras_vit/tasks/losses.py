"""The loss of classification."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="keras_vit")
class ClassLoss(keras.losses.Loss):
    """Cross-entropy between labels and logits, by a softmax or by one sigmoid per class.

    The sigmoid form sums over classes, as in big_vision (Beyer et al. 2020, arXiv:2006.07159, section 5).

    Args:
        kind: `"softmax"` or `"sigmoid"`.
        label_smoothing: Share of each label that is spread evenly over all classes.
        class_weights: Factor on the loss of an image, one per class; `None` for 1.

    Call arguments:
        y_true: `(batch, classes)`, rows that sum to one.
        y_pred: `(batch, classes)`, logits.
    """

    def __init__(self, kind="softmax", label_smoothing=0.0, class_weights=None, name="loss", **kwargs):
        super().__init__(name=name, **kwargs)
        self.kind, self.label_smoothing = kind, label_smoothing
        self.class_weights = None if class_weights is None else [float(w) for w in class_weights]

    def call(self, y_true, y_pred):
        labels = ops.cast(y_true, y_pred.dtype)
        smooth = labels * (1 - self.label_smoothing) + self.label_smoothing / labels.shape[-1]
        if self.kind == "softmax":
            loss = -ops.sum(smooth * ops.log_softmax(y_pred, axis=-1), axis=-1)
        else:
            loss = -ops.sum(smooth * ops.log_sigmoid(y_pred) + (1 - smooth) * ops.log_sigmoid(-y_pred), axis=-1)
        if self.class_weights is not None:
            loss = loss * ops.sum(labels * ops.convert_to_tensor(self.class_weights, labels.dtype), axis=-1)
        return loss  # (batch,)

    def get_config(self):
        return {
            **super().get_config(),
            "kind": self.kind,
            "label_smoothing": self.label_smoothing,
            "class_weights": self.class_weights,
        }
