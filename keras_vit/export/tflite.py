"""Exports to TFLite (LiteRT), for phones and small boards."""

import dataclasses
import os
import re
from collections.abc import Callable, Sequence

import keras
import numpy as np

from keras_vit.export import comparison, gpu, half, metadata, ranks, runtimes, saved_model, sequence
from keras_vit.export import quantize as formats
from keras_vit.export.examples import sample
from keras_vit.export.forms import export_copy
from keras_vit.layers import MergingBlock
from keras_vit.utils import checks
from keras_vit.utils.keras_private import sublayers


def export_tflite(
    model: keras.Model,
    path: os.PathLike | str,
    *,
    quantize: str | None = None,
    calibration=None,
    target: str = "cpu",
    batch_size: int = 1,
    input_dtype: str = "float32",
    probabilities: bool = False,
    labels: Sequence[str] | None = None,
    images: np.ndarray | None = None,
    classes: np.ndarray | None = None,
    score: Callable | None = None,
    overwrite: bool = False,
) -> comparison.Report:
    """Writes a TFLite file that takes raw pixels, runs it in LiteRT and compares it with the model.

    If the machine has a Vulkan driver, the file also runs on LiteRT's GPU accelerator; the report includes the result.

    The file has LiteRT's built-in operators only, and static shapes. Its signature `serve` takes `images`, pixels
    0..255, and returns `logits`, or `probabilities`. `PATH.json` next to it holds the report, the labels and how to
    resize images. The labels and the range of the pixels are also in the file itself, where MediaPipe reads them.

    A text tower's signature takes `texts`, int32 ids, and returns `embeddings`; that of a model of both takes both, as
    many texts as images. The JSON then has the table of words, or the tokenizer's name, in `texts`.

    Args:
        model: A Keras model from pixels to logits, under any precision policy; or from ids of texts, or a dictionary
            of `images` and `texts`, int32 ids.
        path: File to write, ending in `.tflite`; must not exist.
        quantize: `None` for float32; `"float16"`, half the size; `"dynamic"`, a quarter of the size and twice as fast;
            `"int8"`, the same with scales from calibration; `"int16x8"`. `docs/export.md` says which to choose.
        calibration: For `"int8"` and `"int16x8"`: a hundred or more typical images, `(images, height, width,
            channels)`, pixels 0..255; or a `tf.data.Dataset` of images or of `(images, labels)`, batched or not, whose
            first 256 images are used.
        target: `"cpu"`; or `"integer"` for `"int8"` on chips without floats: slower on a CPU and less accurate.
        batch_size: Number of images per call; 1 for `"int8"` and `"int16x8"`.
        input_dtype: Type of the pixels that the file takes, `"float32"` or `"uint8"`.
        probabilities: Whether the output is the softmax of the logits; of a model of several labels, the sigmoids.
        labels: Names of the classes in order, for the JSON; those in the model's metadata if `None`.
        images: Pixels to compare on, `(batch, height, width, channels)`, 0..255, or what else the model takes: ids of
            texts, `(batch, length)`, or a dictionary of both. If `None`: the calibration images for the formats that
            use them, else random ones.
        classes: Integer class labels of `images`; the report then includes top-1 accuracy.
        score: Function from outputs to a dictionary such as `{"mean_iou": 0.9}`. The report has the value of its first
            entry for the file and for the model.
        overwrite: Whether to replace an existing `path`.

    Returns:
        A `Report`.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is false.
        ValueError: If `path` does not end in `.tflite`, the format is unknown, calibration is missing, not used, has
            another shape, or is for a model of texts, the number of labels is not the model's, the model has 2 GB or
            more, or gives logits of all images with all texts.
        ImportError: If a format's converter is not installed.
        RuntimeError: If the backend is not TensorFlow, the model needs operators that LiteRT lacks, or the outputs of
            file and model differ, on the CPU or on LiteRT's GPU accelerator; no file is kept then.
    """
    checks.positive(batch_size=batch_size)
    checks.one_of("input_dtype", input_dtype, ("float32", "uint8"))
    compared = images, classes, score
    facts = {"dtype": input_dtype, "target": target}
    export = sequence.checked(
        "A TFLite file", model, path, ".tflite", compared, labels, probabilities, overwrite, **facts
    )
    _check_format(export.about, quantize, batch_size, input_dtype)
    form = export.about.inputs.get("images"), export.about.range
    calibration = formats.calibration_images(quantize, target, calibration, *form)
    images = sample(export.about, calibration) if images is None and calibration is not None else export.images
    if input_dtype == "uint8":
        images, calibration = (
            keras.tree.map_structure(np.round, images),
            None if calibration is None else calibration.round(),
        )
    export = dataclasses.replace(export, images=images)

    def write(path):
        copy = export_copy(model, fold=calibration is None, half=quantize == "float16")
        convert(copy, path, quantize, target, calibration, batch_size, input_dtype, probabilities)
        metadata.write(path, export.facts)

    def on_other_hardware(path, run, report):
        on_gpu = gpu.compare_with_cpu(path, export.about, images, run, report, batch_size)
        in_half = half.compare_with_float32(export.about, images) if quantize == "float16" else []
        return [*in_half, *on_gpu]

    return sequence.written(export, write, runtimes.tflite, on_other_hardware, quantize=quantize, cost=runtimes.profile)


def _check_format(about, quantize, batch_size, input_dtype):
    """Raises ValueError for what formats cannot hold."""
    if input_dtype != "float32" and "images" not in about.inputs:
        raise ValueError(
            f"`input_dtype` is for models of images. "
            f"Received: input_dtype={checks.shown(input_dtype)} with {about.model.name!r}"
        )
    formats.check_calibrated(quantize, about)
    if quantize not in formats.CALIBRATED:
        return
    if batch_size > 1:
        raise ValueError(f"`batch_size` must be 1 for a calibrated format. Received: batch_size={batch_size}")
    if any(isinstance(layer, MergingBlock) for layer in sublayers(about.model)):
        raise ValueError(
            "Integers cannot hold the places of merged tokens: take quantize='float16' or 'dynamic', or a model "
            f"without merging. Received: quantize={checks.shown(quantize)}"
        )


def convert(
    copy, path, quantize=None, target="cpu", calibration=None, batch_size=1, input_dtype="float32", probabilities=False
):
    """Writes a model's export copy as TFLite; arguments as in `export_tflite`, checked."""
    import tensorflow as tf

    graph = path.with_suffix(".graph")
    saved_model.write(copy, graph, batch_size, input_dtype, probabilities)
    converter = tf.lite.TFLiteConverter.from_saved_model(str(graph), signature_keys=["serve"])
    images = None if calibration is None else calibration.astype(input_dtype)
    formats.configure(converter, quantize, target, images)
    try:
        path.write_bytes(converter.convert())
    except Exception as error:  # the converter's own class is not public
        operators = sorted(set(re.findall(r"\btf\.(\w+)\(", str(error)))) or [str(error).strip().splitlines()[0]]
        raise RuntimeError(f"LiteRT has no built-in operators for: {', '.join(operators[:10])}.") from None
    if quantize == "int8" and target == "cpu":
        formats.products_in_int8(path, images)
    ranks.align(path, delegate=quantize == "float16")
