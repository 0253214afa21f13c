"""Where a stem's feature map raises the logit of a class: Grad-CAM."""

import functools

import keras
import numpy as np
from keras import ops

from keras_vit.explain import inside
from keras_vit.explain.relevance import check_relevance, chosen_classes, gradients, upstream_of, way_to_logits
from keras_vit.models.between import between
from keras_vit.utils import checks


def grad_cam(model: keras.Model, images, classes=None) -> np.ndarray:
    """Computes the Grad-CAM of a convolutional stem: where its channels raise the logit of a class.

    Selvaraju et al. 2017 (arXiv:1610.02391), section 3. The weight of a channel is the mean over all places of the
    gradient of the class's logit. The map is the positive part of the weighted sum of the channels.

    Args:
        model: As in `attention_relevance`, with a `stem`.
        images: Array, `(batch, height, width, channels)`, 0..255.
        classes: Class index of each image, `(batch,)`, or one for all images; the predicted classes if `None`.

    Returns:
        float32 array, `(batch, rows, columns)` of the stem's feature map, at least 0, without an upper bound.

    Raises:
        ValueError: As `attention_relevance`, and for a model without a stem.
        NotImplementedError: On a backend other than TensorFlow and JAX.
    """
    check_relevance(model)
    classes = chosen_classes(model, images, classes)
    return inside.in_parts(functools.partial(_map, model=model), model, inside.checked(model, images), classes)


def _map(vit, images, classes, model):
    stems = [layer for layer in vit.layers if layer.name == "stem"]
    if not stems or len(stems[0].output.shape) != 4:
        raise ValueError(
            f"The model must have a convolutional stem. Received: {checks.shown(vit.name)}, without a layer 'stem'"
        )
    features = stems[0].output
    path, as_logits = way_to_logits(model, vit, features)
    upstream = upstream_of(model, classes)

    def logit(values):
        (y,) = values
        for start, end in path:
            y = between(start, end, y)
        return ops.sum(ops.cast(as_logits(y), "float32") * upstream)

    (values,) = inside.run(vit, [features], images)
    (slopes,) = gradients(logit, [values])
    weights = np.asarray(slopes, "float32").mean((1, 2), keepdims=True)  # (batch, 1, 1, channels)
    return np.maximum((weights * np.asarray(ops.convert_to_numpy(values), "float32")).sum(-1), 0)
