"""Exports to OpenVINO's IR, for processors of Intel and AMD."""

import contextlib
import dataclasses
import io
import json
import logging
import os
from collections.abc import Callable, Sequence

import keras
import numpy as np

from keras_vit.export import comparison, prepare, runtimes, sequence
from keras_vit.export import quantize as formats
from keras_vit.export.examples import sample
from keras_vit.export.forms import export_copy, float32
from keras_vit.layers import PointBoxes
from keras_vit.models.inputs import TYPES, count, fed, first
from keras_vit.traits import Traits
from keras_vit.utils import checks
from keras_vit.utils.environment import environment
from keras_vit.utils.keras_private import sublayers

FORMATS = (None, "int8")


def export_openvino(
    model: keras.Model,
    path: os.PathLike | str,
    *,
    quantize: str | None = None,
    calibration=None,
    batch: int | None = None,
    images: np.ndarray | None = None,
    classes: np.ndarray | None = None,
    score: Callable | None = None,
    labels: Sequence[str] | None = None,
    probabilities: bool = False,
    overwrite: bool = False,
) -> comparison.Report:
    """Writes OpenVINO's IR that takes raw pixels, runs it in OpenVINO and compares it with the model.

    The IR is two files, `NAME.xml` with the graph and `NAME.bin` with the weights. Its input is `images`, pixels 0..255
    as float32; its output is `logits`, or `probabilities`. `NAME.xml.json` holds the report and the labels; the `.xml`
    has the labels, how to resize images and the shape and range of the pixels too, each as JSON, in its runtime
    information under `keras_vit`. Of models of texts, see `export_tflite`.

    The file is compared in float32. OpenVINO itself chooses bfloat16 where the processor has it; the report then says
    how far that is from the model. Set `INFERENCE_PRECISION_HINT` to `f32` where the file is loaded to prevent it.

    Args:
        model: A Keras model from pixels to logits, under any precision policy; or from ids of texts, or a dictionary
            of `images` and `texts`, int32 ids.
        path: File to write, ending in `.xml`; must not exist, and neither must the `.bin` next to it.
        quantize: `None` for float32; `"int8"`, a quarter of the size, with weights and products in int8 (by NNCF).
        calibration: For `"int8"`: as in `export_tflite`.
        batch: Number of images per call, which is faster for small models; any number if `None`.
        images: Pixels to compare on, `(batch, height, width, channels)`, 0..255, or what else the model takes: ids of
            texts, `(batch, length)`, or a dictionary of both. If `None`: the calibration images for `"int8"`, else
            random ones.
        classes: Integer class labels of `images`; the report then includes top-1 accuracy.
        score: Function from outputs to a dictionary such as `{"mean_iou": 0.9}`. The report has the value of its first
            entry for the file, for the file in bfloat16, and for the model.
        labels: Names of the classes in order, for the JSON; those in the model's metadata if `None`.
        probabilities: Whether the output is the softmax of the logits; of a model of several labels, the sigmoids.
        overwrite: Whether to replace an existing `path`.

    Returns:
        A `Report`.

    Raises:
        FileExistsError: If `path` or its `.bin` exists and `overwrite` is false.
        ValueError: If `path` does not end in `.xml`, the format is unknown, calibration is missing or not used, `batch`
            is below 1, or images, classes or labels do not match the model; for int8 of a detector with
            `head="points"`.
        ImportError: If openvino is not installed, or nncf for `"int8"`.
        RuntimeError: If the backend is not TensorFlow, or the outputs of file and model differ; no file is kept then.
            For int8 without `batch` of a model with more tokens than its width, such as Ti/16 at 224 pixels.
    """
    checks.one_of("quantize", quantize, FORMATS)
    if batch is not None:
        checks.positive(batch=batch)
    compared = images, classes, score
    export = sequence.checked(
        "OpenVINO's IR", model, path, ".xml", compared, labels, probabilities, overwrite, limit=float("inf")
    )
    shapes = export.about.inputs
    for entry in {"input", "texts"} & set(export.facts):
        export.facts[entry]["shape"][0] = batch
    formats.check_calibrated(quantize, export.about)
    if quantize and any(isinstance(layer, PointBoxes) for layer in sublayers(model)):
        raise ValueError(
            'OpenVINO 2026.4 cannot compile the int8 form of Detect(head="points"): take quantize=None. '
            f"Received: quantize={checks.shown(quantize)} with {model.name!r}"
        )
    if not quantize:
        formats.check_no_calibration(quantize, calibration)
    prepare.need(**{"quantize": ["openvino int8"]} if quantize else {"openvino": True})
    if quantize:
        form = shapes["images"], export.about.range
        calibration = formats.typical_images(quantize, calibration, *form)
        images = sample(export.about, calibration) if images is None else export.images
        export = dataclasses.replace(export, images=images)

    def write(path):
        import openvino

        copy = export_copy(model)
        about = Traits(copy)

        def named_outputs(inputs):
            return prepare.named_outputs(about, copy(inputs, training=False), probabilities)

        written = converted(named_outputs, shapes, batch)
        written = in_int8(written, calibration, batch) if quantize else written
        for name, value in export.facts.items():
            written.set_rt_info(json.dumps(value), ["keras_vit", name])
        openvino.save_model(written, path, compress_to_fp16=False)

    def in_bfloat16(path, run, report):
        return _compared_in_bfloat16(path, export)

    def load(path):
        try:
            return runtimes.openvino(path)
        except RuntimeError as error:
            if not quantize or batch is not None:
                raise
            # OpenVINO 2026.4 moves scales through a reshape, and so mistakes the tokens for channels.
            more = "In int8 and for any number of images it fails where there are more tokens than the model is wide"
            raise RuntimeError(f"{error}. {more}: pass `batch`, such as batch=1.") from None

    return sequence.written(export, write, load, in_bfloat16, quantize=quantize)


def converted(function, shapes, batch=None):
    """Returns OpenVINO's model of a function of TensorFlow to a dictionary of outputs by name.

    Args:
        function: The function of what a model is called with; see `models.inputs.fed`.
        shapes: What the model takes, see `models.inputs.inputs_of`.
        batch: Number of examples; any if `None`.
    """
    import openvino
    import tensorflow as tf

    specs = {name: tf.TensorSpec((batch, *shape), TYPES[name], name=name) for name, shape in shapes.items()}
    traced = tf.function(function).get_concrete_function(fed(specs, shapes))
    # Without the variable OpenVINO sends notes of its use: each would fork this process, and wait for a network.
    with environment("CI", "true"):
        # Shared weights would be read from TensorFlow's memory, also after TensorFlow has freed it.
        model = openvino.convert_model(traced, share_weights=False)
    for each in model.inputs:
        key = len(each.partial_shape) - 1, each.element_type.to_dtype()
        alike = [name for name, shape in shapes.items() if (len(shape), TYPES[name]) == key]
        own = {name.partition(":")[0] for name in each.names}  # of several alike, such as two images
        each.tensor.set_names({next((name for name in alike if name in own), alike[0])})
    for output in model.outputs:
        output.tensor.set_names({next(name for name in traced.structured_outputs if name in output.names)})
    return model


def in_int8(model, calibration, batch=None):
    """Returns OpenVINO's model with weights and products in int8, whose scales come from images, by NNCF."""
    logging.getLogger("nncf").setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        import nncf

        count = batch or 1
        usable = len(calibration) // count * count or len(calibration)
        parts = [calibration[i : i + count] for i in range(0, usable, count)]
        parts = [np.concatenate([part] * count)[:count] for part in parts]
        # NNCF would move scales from activations to weights: `mnist` then had 60 % of its test set right, not 99.
        none = nncf.AdvancedSmoothQuantParameters(convolution=-1, matmul=-1)
        return nncf.quantize(
            model,
            nncf.Dataset(parts),
            subset_size=len(parts),
            model_type=nncf.ModelType.TRANSFORMER,
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                smooth_quant_alphas=none,
                overflow_fix=nncf.OverflowFix.ENABLE,  # without VNNI, sums of two full products overflow 16 bits
            ),
        )


def _compared_in_bfloat16(path, export):
    """Returns a `Comparison` in a list for a file computed in bfloat16; none if this processor does not have it."""
    if not runtimes.openvino_has("BF16"):
        return []
    run, _ = runtimes.openvino(path, "bf16")
    kind, images = export.about.kind, export.images
    expected = comparison.model_outputs(float32(export.model), images)
    expected = np.asarray(kind.probabilities(expected)) if export.probabilities else expected
    outputs = run(images)
    computed, reference = kind.aligned(outputs, expected)
    scored = export.score(outputs) if export.score else {}
    return [
        comparison.Comparison(
            on="bfloat16",
            images=count(images),
            max_abs_diff=kind.largest(computed, reference),
            agreement=kind.agreement(computed, reference),
            accuracy=next((float(value) for value in scored.values()), None),
            ms=runtimes.median_ms(lambda: run(first(images, 1))),
        )
    ]
