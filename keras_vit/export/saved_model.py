"""Exports to TensorFlow's SavedModel, for servers."""

import functools
import os
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import keras
import numpy as np

from keras_vit.export import comparison, prepare, runtimes, sequence
from keras_vit.export import warm_up as warm_up_file
from keras_vit.export.forms import float32
from keras_vit.models.inputs import TYPES, fed
from keras_vit.preparing.preprocessing import data_resize
from keras_vit.traits import Traits
from keras_vit.utils import checks


def export_saved_model(
    model: keras.Model,
    path: os.PathLike | str,
    *,
    images: np.ndarray | None = None,
    classes: np.ndarray | None = None,
    score: Callable | None = None,
    labels: Sequence[str] | None = None,
    probabilities: bool = False,
    xla: bool = False,
    warm_up: Sequence[int] = (1,),
    overwrite: bool = False,
) -> comparison.Report:
    """Writes a SavedModel that takes raw pixels or encoded files, runs it and compares it with the model.

    The SavedModel is in float32. It has two signatures, each for any number of images:

    - `serve`, the default, takes `images`, float32 pixels 0..255.
    - `serve_bytes` takes `encoded`, strings that each hold a JPEG or PNG file, decodes them as Pillow does, turns them
      upright by their EXIF data, and resizes them as the model's evaluation does. Only models of 1 or 3 channels and
      of pixels from 0 to 255 have it.

    Both return `logits`, or `probabilities`. `assets.extra/keras_vit.json` inside holds the report and the labels. Of
    models of texts, see `export_tflite`: they have `serve` alone.

    Args:
        model: A Keras model from pixels to logits, under any precision policy; or from ids of texts, or a dictionary
            of `images` and `texts`, int32 ids.
        path: Folder to write; must not exist.
        images: Pixels to compare on, `(batch, height, width, channels)`, 0..255, or what else the model takes: ids of
            texts, `(batch, length)`, or a dictionary of both; random ones if `None`.
        classes: Integer class labels of `images`; the report then includes top-1 accuracy.
        score: Function from outputs to a dictionary such as `{"mean_iou": 0.9}`. The report has the value of its first
            entry for the file and for the model.
        labels: Names of the classes in order, for the JSON; those in the model's metadata if `None`.
        probabilities: Whether the output is the softmax of the logits; of a model of several labels, the sigmoids.
        xla: Whether the model is compiled by XLA where it is served, once for each number of images. Send the same few
            numbers of images then.
        warm_up: Numbers of images for which TensorFlow Serving runs each signature when it loads the model, before it
            answers requests. With `xla`, list all numbers that will be sent.
        overwrite: Whether to replace an existing `path`.

    Returns:
        A `Report`.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is false.
        ValueError: If images, classes or labels do not match the model, or for a number of images below 1.
        RuntimeError: If the backend is not TensorFlow, or the outputs of file and model differ; no file is kept then.
    """
    checks.switch(xla=xla)
    warm_up = _counts(warm_up)
    compared = images, classes, score
    export = sequence.checked(
        "A SavedModel", model, path, None, compared, labels, probabilities, overwrite, limit=float("inf")
    )

    def write_all(path):
        write(float32(model), path, None, probabilities=probabilities, encoded=True, xla=xla)

    def warmed_up(path, run, report):
        warm_up_file.write(path, _signatures(export.about), export.about.inputs, warm_up)
        return []

    load = functools.partial(runtimes.saved_model, images=export.images)
    return sequence.written(export, write_all, load, warmed_up)


def _counts(warm_up):
    """Returns numbers of images as a tuple; raises ValueError for others."""
    counts = tuple(warm_up) if isinstance(warm_up, (tuple, list)) else (warm_up,)
    for count in counts:
        checks.positive(warm_up=count)
    if len(counts) > warm_up_file.MOST // 2:
        raise ValueError(f"`warm_up` must have {warm_up_file.MOST // 2} numbers or fewer. Received: {len(counts)}")
    return counts


def _signatures(about):
    """Returns the names of a model's signatures."""
    shapes = about.inputs
    files = [*shapes] == ["images"] and shapes["images"][-1] in (1, 3) and about.range == checks.BYTES
    files = files and about.rule["resize"] != "pad"  # TensorFlow has no such filter
    files = files and not (about.rule.get("as_floats") and about.rule["interpolation"] == "bicubic")  # it would be cut
    return ["serve", "serve_bytes"] if files else ["serve"]


def write(model, path, batch_size, input_dtype="float32", probabilities=False, encoded=False, xla=False):
    """Writes a SavedModel with the signature `serve`, and with `serve_bytes` if `encoded` and the model has it."""
    import tensorflow as tf

    about = Traits(model)
    shapes = about.inputs

    def serve(*arrays):
        if encoded:  # else a loaded signature takes any shape, and one of another rank may end the process
            arrays = [tf.ensure_shape(values, (batch_size, *shape)) for values, shape in zip(arrays, shapes.values())]
        cast = {name: tf.cast(values, TYPES[name]) for name, values in zip(shapes, arrays)}
        return prepare.named_outputs(about, model(fed(cast, shapes), training=False), probabilities)

    serve = tf.function(serve, jit_compile=True) if xla else serve

    def serve_bytes(encoded):
        from keras_vit.data.augment.crops import evaluation_image
        from keras_vit.data.readers.decoding import decode_in_graph, is_plain
        from keras_vit.export.exif import orientations

        (height, width, channels), rule = shapes["images"], about.rule
        full = rule["full_size"]
        data = SimpleNamespace(
            resize=data_resize(full, rule),
            method=rule["interpolation"],
            antialias=rule["antialias"],
            crop_offset=rule["crop_offset"],
        )

        def image(pair):
            with tf.control_dependencies([tf.debugging.Assert(is_plain(pair[0]), ["A file must be a JPEG or PNG."])]):
                pixels = decode_in_graph(pair[0], channels, pair[1])
            return evaluation_image(pixels, (*full, channels), data)[:height, :width]

        return serve(tf.map_fn(image, (encoded, orientations(encoded)), fn_output_signature="float32"))

    types = {**TYPES, "images": input_dtype}
    specs = [tf.TensorSpec((batch_size, *shape), types[name], name=name) for name, shape in shapes.items()]
    functions = {"serve": (serve, specs)}
    if encoded and "serve_bytes" in _signatures(about):
        functions["serve_bytes"] = serve_bytes, [tf.TensorSpec((None,), tf.string, name="encoded")]
    module, signatures = tf.Module(), {}  # Keras's ExportArchive writes each weight twice
    for name, (function, specs) in functions.items():
        function = tf.function(function, input_signature=specs, autograph=False)
        setattr(module, name, function)
        signatures[name] = function.get_concrete_function()
    module.weights = [*signatures["serve"].variables]
    tf.saved_model.save(module, str(path), {**signatures, "serving_default": signatures["serve"]})
