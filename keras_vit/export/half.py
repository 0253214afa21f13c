"""Whether a model is right in float16, in which GPUs of phones compute."""

import numpy as np

from keras_vit.export.comparison import Comparison, model_outputs
from keras_vit.export.forms import export_copy, float32
from keras_vit.models.counting import count_macs
from keras_vit.models.inputs import count, first
from keras_vit.utils.warned import warn

IMAGES, MACS = 4, 50e9  # images, and multiply-adds of one: TensorFlow computes float16 slowly on a CPU
LARGEST = 0.05  # difference, as a share of the range of the outputs, from which on there is a warning


def compare_with_float32(about, images):
    """Computes a model's export form in float16 and compares it with float32.

    The output of each layer's operators is rounded, and sums within one are in float32, as on most GPUs. What layers
    compute in float32 under any policy stays so: the softmax of attention, the places of merged tokens, and the lengths
    of vectors in `MaskDecoder`.

    Args:
        about: The model's `Traits`.
        images: Pixels; the first few are used.

    Returns:
        A `Comparison` in a list; empty for a model that is too large, or that Keras cannot clone.

    Warns:
        UserWarning: If the outputs differ by more than `LARGEST`, or are not finite.
    """
    model, kind = about.model, about.kind
    half = export_copy(model, half=True, dtype="mixed_float16")
    if half is model or count_macs(half) > MACS:
        return []
    images = first(images, IMAGES)
    with np.errstate(over="ignore", invalid="ignore"):
        outputs, expected = kind.aligned(model_outputs(half, images), model_outputs(float32(model), images))
        difference = kind.largest(outputs, expected)
    span = float(np.ptp(expected))
    if not difference <= LARGEST * max(span, 1e-3):  # written so that NaN warns too
        warn(
            f"In float16 the outputs of {model.name!r} differ by {difference:.3g}, of a range of {span:.3g}: let the "
            "GPU compute in float32."
        )
    return [Comparison("float16", count(images), difference, kind.agreement(outputs, expected))]
