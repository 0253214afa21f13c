"""TFLite files with fewer bits: which converter makes each format, and what it is told.

| format | weights | computed in |
|---|---|---|
| `"float16"` | half | float32 |
| `"dynamic"` | int8, a scale an output channel | int8 products, scales of activations found while running |
| `"int8"` | likewise | int8 products, scales of activations from calibration; the rest in float32 |
| `"int8"`, target `"integer"` | likewise | integers alone |
| `"int16x8"` | likewise | integers alone, activations of 16 bits |

The third is ai-edge-quantizer's work, the others are that of TensorFlow's converter.

What a ViT loses in eight bits it loses between its products: in norms, soft-max, GELU and the residual stream, whose
few large channels leave the others a few steps; and there integers cost more than floats, where the runtime has no
fast code for them.
"""

import contextlib
import io
import itertools
import warnings

import numpy as np

from keras_vit import checks
from keras_vit.export.prepare import need

FORMATS = (None, "float16", "dynamic", "int8", "int16x8")
TARGETS = ("cpu", "integer")
CALIBRATED = ("int8", "int16x8")
FEW, MANY = 32, 256  # images of calibration: of a dataset no more are taken


def check(quantize, target, calibration, shape):
    """Returns the calibration images as float32, or `None`; raises ValueError for what does not go together."""
    checks.one_of("quantize", quantize, FORMATS)
    checks.one_of("target", target, TARGETS)
    if target == "integer" and quantize not in CALIBRATED:
        raise ValueError(f"target='integer' is for quantize='int8' and 'int16x8'. Received: quantize={quantize!r}")
    if quantize not in CALIBRATED:
        return None
    if calibration is None:
        raise ValueError(
            f"quantize={quantize!r} needs `calibration`, images such as the model will see: a hundred of the training "
            "set will do. Received: None"
        )
    need([quantize] if target == "cpu" else ())
    images = checks.pixels(_images(calibration), shape, "calibration").astype("float32")
    if len(images) < FEW:
        warnings.warn(f"Calibration on few images is rough: {len(images)}, and {FEW} are few.", stacklevel=3)
    return images


def _images(calibration):
    """Returns the images of an array, or the first of a `tf.data.Dataset`."""
    import tensorflow as tf

    wanted = "`calibration` is an array of images, or a tf.data.Dataset of images or of (images, labels)."
    if not isinstance(calibration, tf.data.Dataset):
        with contextlib.suppress(ValueError, TypeError):  # of images of several sizes
            if hasattr(calibration, "__array__") or isinstance(calibration, (list, tuple)):
                return np.asarray(calibration)
        raise ValueError(f"{wanted} Received: {type(calibration).__name__}")
    spec = calibration.element_spec
    first = spec[0] if isinstance(spec, tuple) else spec
    rank = first.shape.rank if isinstance(first, tf.TensorSpec) else None
    if rank not in (3, 4):
        raise ValueError(f"{wanted} Received: a dataset of {spec}")
    images = calibration.map(lambda *element: element[0])
    images = images.unbatch() if rank == 4 else images
    found = list(itertools.islice(images.as_numpy_iterator(), MANY))
    shapes = sorted({image.shape for image in found})
    if len(shapes) != 1:
        raise ValueError(f"{wanted} Received: {f'images of shapes {shapes[:3]}' if found else 'an empty dataset'}")
    return np.stack(found)


def tell(converter, quantize, target, calibration):
    """Tells TensorFlow's converter what a format asks of it."""
    import tensorflow as tf

    sets, target_spec = tf.lite.OpsSet, converter.target_spec
    target_spec.supported_ops = [sets.TFLITE_BUILTINS]
    if quantize is None or (quantize == "int8" and target == "cpu"):
        return
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantize == "float16":
        target_spec.supported_types = [tf.float16]
    if quantize in CALIBRATED:
        converter.representative_dataset = lambda: ([image[None]] for image in calibration)
        small = sets.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        target_spec.supported_ops = [sets.TFLITE_BUILTINS_INT8 if quantize == "int8" else small]


def products_in_int8(path, calibration):
    """Quantizes the products of a float32 TFLite file with a batch of one image: dense layers and convolutions.

    Weights by output channel; what goes in and comes out by the smallest and the largest value in calibration.
    """
    from ai_edge_quantizer import calibrator, qtyping, quantizer, recipe_manager
    from ai_edge_quantizer.utils import qsv_utils

    recipe = recipe_manager.RecipeManager()
    for kind in (qtyping.TFLOperationName.FULLY_CONNECTED, qtyping.TFLOperationName.CONV_2D):
        recipe.add_static_config(".*", kind, activation_num_bits=8, weight_num_bits=8)
    told = io.StringIO()  # its progress
    with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranges = calibrator.Calibrator(str(path), num_threads=1, qsv_update_func=qsv_utils.min_max_update)
        ranges.calibrate({"serve": [{"images": image[None]} for image in calibration]}, recipe)
        made = quantizer.Quantizer(str(path), recipe.get_quantization_recipe()).quantize(ranges.get_model_qsvs())
    path.write_bytes(made.quantized_model)
