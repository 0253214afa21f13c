"""Quantized TFLite files: the converter of each format, and its settings.

| format | weights | computed in |
|---|---|---|
| `"float16"` | half | float32 |
| `"dynamic"` | int8, one scale per output channel | int8 products, scales of activations computed at run time |
| `"int8"` | same | int8 products, scales of activations from calibration; the rest in float32 |
| `"int8"`, target `"integer"` | same | integers only |
| `"int16x8"` | same | integers only, activations of 16 bits |

ai-edge-quantizer writes the third, TensorFlow's converter the others.

A ViT loses accuracy in eight bits between its products: in norms, softmax, GELU and the residual stream. A few large
channels there leave few steps to the others. Integers also cost more than floats there, because the runtime has no
fast code for them.
"""

import contextlib
import io
import itertools
import re
import warnings

import numpy as np

from keras_vit.export.layer_differences import opened
from keras_vit.export.prepare import need
from keras_vit.utils import checks
from keras_vit.utils.keras_private import tflite_operators
from keras_vit.utils.warned import warn

FORMATS = (None, "float16", "dynamic", "int8", "int16x8")
TARGETS = ("cpu", "integer")
CALIBRATED = ("int8", "int16x8")
LEAST = 1e-3  # range of a tensor, at least
PRODUCTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV", "BATCH_MATMUL")
FEW, MANY = 32, 256  # images of calibration: fewer than FEW warn; of a dataset the first MANY are taken


def calibration_images(quantize, target, calibration, shape, value_range=checks.BYTES):
    """Returns the calibration images as float32, or `None`; raises ValueError if the settings contradict."""
    checks.one_of("quantize", quantize, FORMATS)
    checks.one_of("target", target, TARGETS)
    if target == "integer" and quantize not in CALIBRATED:
        raise ValueError(
            f"target='integer' needs quantize='int8' or 'int16x8'. Received: quantize={checks.shown(quantize)}"
        )
    if quantize not in CALIBRATED:
        check_no_calibration(quantize, calibration)
        return None
    need([quantize] if target == "cpu" else ())
    return typical_images(quantize, calibration, shape, value_range)


def check_calibrated(quantize, about):
    """Raises ValueError for a format whose scales come from images, of a model that takes anything else."""
    checks.one_of("quantize", quantize, FORMATS)
    if quantize in CALIBRATED and {*about.inputs} != {"images"}:
        raise ValueError(
            "Calibration is for models of images alone: take quantize='float16' or 'dynamic'. "
            f"Received: quantize={quantize!r} with {about.model.name!r}, which takes {' and '.join(about.inputs)}"
        )


def check_no_calibration(quantize, calibration):
    """Raises ValueError for images that a format would not use."""
    if calibration is not None:
        raise ValueError(
            f"`calibration` is for quantize={' and '.join(map(repr, CALIBRATED))}. "
            f"Received: quantize={checks.shown(quantize)}"
        )


def typical_images(quantize, calibration, shape, value_range):
    """Returns the images of `calibration` as float32; raises ValueError if they are missing or do not fit."""
    if calibration is None:
        raise ValueError(
            f"quantize={quantize!r} needs `calibration`: typical images, for example a hundred of the training set. "
            "Received: calibration=None"
        )
    images = checks.pixels(_images(calibration), shape, "calibration", value_range).astype("float32")
    if len(images) < FEW:
        warn(f"Calibration on fewer than {FEW} images is rough. Received: {len(images)}")
    return images


def _images(calibration):
    """Returns the images of an array, or the first of a `tf.data.Dataset`."""
    import tensorflow as tf

    rule = "`calibration` must be an array of images, or a tf.data.Dataset of images or of (images, labels)."
    if not isinstance(calibration, tf.data.Dataset):
        with contextlib.suppress(ValueError, TypeError):  # images of several sizes
            if hasattr(calibration, "__array__") or isinstance(calibration, (list, tuple)):
                return np.asarray(calibration)
        raise ValueError(f"{rule} Received: {type(calibration).__name__}")
    spec = calibration.element_spec
    first = spec[0] if isinstance(spec, tuple) else spec
    rank = first.shape.rank if isinstance(first, tf.TensorSpec) else None
    if rank not in (3, 4):
        raise ValueError(f"{rule} Received: a dataset of {spec}")
    images = calibration.map(lambda *element: element[0])
    images = images.unbatch() if rank == 4 else images
    try:
        arrays = list(itertools.islice(images.as_numpy_iterator(), MANY))
    except tf.errors.OpError as error:  # such as of a damaged file, or of the caller's generator
        reason = error.message.partition("}} ")[2].splitlines() or error.message.splitlines()
        raise ValueError(f"The dataset `calibration` cannot be read: {reason[0].rstrip('.')}.") from error
    shapes = sorted({image.shape for image in arrays})
    if len(shapes) != 1:
        raise ValueError(f"{rule} Received: {f'images of shapes {shapes[:3]}' if arrays else 'an empty dataset'}")
    return np.stack(arrays)


def configure(converter, quantize, target, calibration):
    """Sets TensorFlow's converter to a format."""
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


def last_products(path):
    """Returns the names of the tensors of a TFLite file that dense layers make, and from which its outputs come.

    Between them and the outputs are operators with one input besides constants, such as a scale, or a concatenation.
    """
    interpreter = opened(path)
    operators = tflite_operators(interpreter)
    makers = {int(out): operator for operator in operators for out in operator["outputs"]}
    names = {int(tensor["index"]): tensor["name"] for tensor in interpreter.get_tensor_details()}
    inputs = {int(tensor["index"]) for tensor in interpreter.get_input_details()}
    places, products = [int(tensor["index"]) for tensor in interpreter.get_output_details()], {}
    while places:
        place = places.pop()
        if place not in makers or place in products:
            continue
        name, operands = makers[place]["op_name"], [int(i) for i in makers[place]["inputs"]]
        products[place] = name == "FULLY_CONNECTED"
        computed = [i for i in operands if i in makers or i in inputs]
        if not products[place] and name not in PRODUCTS and (len(computed) == 1 or name in ("CONCATENATION", "PACK")):
            places += computed
    return [names[place] for place, is_product in products.items() if is_product]


def products_in_int8(path, calibration):
    """Quantizes the products of a float32 TFLite file, dense layers and convolutions, for batches of one image.

    Weights have one scale per output channel. The scales of inputs and outputs come from the smallest and the largest
    value in calibration. The last dense layers return float32, with scales of their inputs computed at run time: one
    scale for all outputs would leave no steps to the small numbers next to large ones.
    """
    from ai_edge_quantizer import calibrator, qtyping, quantizer, recipe_manager
    from ai_edge_quantizer.utils import qsv_utils

    recipe = recipe_manager.RecipeManager()
    for kind in (qtyping.TFLOperationName.FULLY_CONNECTED, qtyping.TFLOperationName.CONV_2D):
        recipe.add_static_config(".*", kind, activation_num_bits=8, weight_num_bits=8)
    for tensor in last_products(path):
        recipe.add_dynamic_config(f"^{re.escape(tensor)};$", qtyping.TFLOperationName.FULLY_CONNECTED, num_bits=8)
    progress = io.StringIO()
    with contextlib.redirect_stdout(progress), contextlib.redirect_stderr(progress), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranges = calibrator.Calibrator(str(path), num_threads=1, qsv_update_func=qsv_utils.min_max_update)
        ranges.calibrate({"serve": [{"images": image[None]} for image in calibration]}, recipe)
        statistics = ranges.get_model_qsvs()
        for tensor in statistics.values():  # the runtime aborts at the scale of an output that is always zero
            tensor["max"] = np.maximum(tensor["max"], tensor["min"] + LEAST)
        result = quantizer.Quantizer(str(path), recipe.get_quantization_recipe()).quantize(statistics)
    path.write_bytes(result.quantized_model)
