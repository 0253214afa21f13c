"""A model that writes texts as two files, the encoder and one step of the decoder: the loop is the user's."""

import contextlib
import io
import json
import os
import pathlib

import keras
import numpy as np
from keras import ops

from keras_vit.export import matrices, prepare, runtimes
from keras_vit.export.forms import export_copy
from keras_vit.generation.decoding import blocks_of, context_of, step
from keras_vit.models.captioner import MARKS, context_for, is_translator, parts_of, words_of
from keras_vit.models.inputs import table_of
from keras_vit.utils import checks, files
from keras_vit.utils.cores import cores

FORMATS = (".tflite", ".onnx")
CLOSE = 1e-3  # difference of logits allowed, as a share of their range
NOTES = "writer.json"


class Encoder(keras.Model):
    """From an image, or the ids of a text, one each, to keys and values of all blocks, `(2 * depth, tokens, ...)`.

    If the decoder masks its context, there is a second output, which of its tokens are seen, `(1, tokens)`.
    """

    def __init__(self, image, text):
        super().__init__(name="encoder")
        self.image = image
        self.text = text

    def call(self, inputs):
        (given,) = inputs.values()
        context = context_for(self.text, self.image, given, training=False)
        pairs = context_of(self.text, context.pop("context"))
        return {"context": ops.concatenate([part for pair in pairs for part in pair]), **context}


class Step(keras.Model):
    """From a word, its place, the cache and the encoder's output to the next word's logits and the cache."""

    def __init__(self, text):
        super().__init__(name="step")
        self.text = text

    def call(self, inputs):
        cache, context = (_pairs(inputs[name]) for name in ("cache", "context"))
        if "context_mask" in inputs:
            context = [(*pair, inputs["context_mask"][:, None, None]) for pair in context]
        logits, pairs = step(self.text, inputs["ids"], inputs["place"][0], cache, context)
        return {"logits": logits, "next_cache": ops.concatenate([part for pair in pairs for part in pair])}


def export_writer(
    model: keras.Model,
    path: str | os.PathLike,
    *,
    format: str = ".tflite",
    length: int = 64,
    overwrite: bool = False,
) -> pathlib.Path:
    """Writes a captioner as two files for one image, or text, at a time: `encoder` and `step`, in TFLite or ONNX.

    `encoder` takes `images`, `(1, height, width, channels)`, pixels as float32, or, of a model that translates,
    `sources`, `(1, length)`, int32 ids. It returns `context`, and `context_mask` if the decoder has one. `step` takes
    `ids`, `(1, 1)`, and `place`, `(1,)`, int32: a word and its place from 0; `cache`, zeros at first, of the shape in
    `writer.json`; and what `encoder` returned. It returns `logits`, `(1, vocabulary)`, and `next_cache`, the cache for
    the next word.
    `writer.json` also has the ids of start, end and padding. Both files are run and compared with the model word by
    word before they are moved to `path`. Weights of 2 GB or more are in `NAME.onnx.data`; TFLite cannot hold them.

    Args:
        model: A model from `captioner`.
        path: Folder to write.
        format: `".tflite"` or `".onnx"`.
        length: Ids of the longest text, its start counted; at most the decoder's.
        overwrite: Whether to replace a folder that exists.

    Returns:
        The path of the folder.

    Raises:
        TypeError, ValueError: For another model, one that is too large, or an argument outside the above.
        FileExistsError: If the folder exists, unless `overwrite` is true and it has a `writer.json`.
        ImportError: For ONNX, without the extra `onnx`.
        RuntimeError: On another backend than TensorFlow; if a file computes something else than the model.
    """
    checks.model(model)
    checks.one_of("format", format, FORMATS)
    checks.positive(length=length)
    checks.switch(overwrite=overwrite)
    path = checks.path("path", path)
    image, text = parts_of(model)
    if image is None:
        raise ValueError(f"`model` must be a model from keras_vit.captioner. Received: {model.name!r}")
    words = words_of(text)
    if length > words.length:
        raise ValueError(f"`length` must be at most the model's, {words.length}. Received: length={length}")
    for part in (image, text) if format == ".tflite" else ():
        prepare.check_size(part)
    files.check_free(path, overwrite, within=NOTES)
    prepare.need_tensorflow_backend("A file of this format")
    prepare.need(onnx=format == ".onnx")

    attention = blocks_of(text)[0].attention
    shape = (2 * len(blocks_of(text)), length, attention.num_heads, attention.head_dim)
    notes = {mark: words.metadata[mark] for mark in MARKS} | {"length": length, "cache": shape}
    copy = export_copy(model, erf=format == ".onnx")
    encoder, one = Encoder(*parts_of(copy)), Step(parts_of(copy)[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    with files.replacing(path) as new:
        new.mkdir()
        pixels = _drawn(model, image)
        context = _write(encoder, pixels, new / f"encoder{format}")
        _write(one, _first(notes, context), new / f"step{format}")
        (new / NOTES).write_text(json.dumps(notes, indent=1) + "\n")
        _compare(new, format, notes, (image, text), pixels)
    return path


def _drawn(model, tower):
    """Returns a random input of an encoder, by its name."""
    random, shape = np.random.default_rng(0), (1, *tower.input_shape[1:])
    if is_translator(model):
        return {"sources": random.integers(0, table_of(tower)[1], shape).astype("int32")}
    return {"images": random.uniform(0, 255, shape).astype("float32")}


def _pairs(stacked):
    return [(stacked[i : i + 1], stacked[i + 1 : i + 2]) for i in range(0, stacked.shape[0], 2)]


def _first(notes, context):
    """Returns the inputs of the first step; `context` is what the encoder returned."""
    return {
        "ids": np.array([[notes["start"]]], "int32"),
        "place": np.array([0], "int32"),
        "cache": np.zeros(notes["cache"], "float32"),
        **context,
    }


def _write(model, inputs, path):
    """Writes a part with Keras's exporter, and returns what it computes for some inputs."""
    outputs = model(inputs)
    if path.suffix == ".onnx":
        matrices.save(matrices.converted(model, inputs, path), path, model)
    else:
        specs = {name: keras.InputSpec(shape=x.shape, dtype=str(x.dtype), name=name) for name, x in inputs.items()}
        with contextlib.redirect_stdout(io.StringIO()):
            model.export(str(path), format="litert", input_signature=[specs], verbose=False)
    return {name: ops.convert_to_numpy(output) for name, output in outputs.items()}


def load_part(path):
    """Returns a function from the named inputs of an exported part to its outputs, by name."""
    if path.suffix == ".onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        names = [output.name for output in session.get_outputs()]
        return lambda **inputs: dict(zip(names, session.run(None, inputs)))
    return runtimes.opened(path, cores()).get_signature_runner()


def _compare(folder, format, notes, parts, pixels):
    """Raises RuntimeError unless both files compute what the model does, word by word."""
    encoder, one = (load_part(folder / f"{name}{format}") for name in ("encoder", "step"))
    image, text = parts
    inputs, ids = _first(notes, encoder(**pixels)), [notes["start"]]
    context = context_for(text, image, *pixels.values(), training=False)
    while len(ids) < min(notes["length"], 8):
        outputs = one(**inputs)
        whole = text({"texts": ops.convert_to_tensor(np.array([ids], "int32")), **context}, training=False)
        expected = ops.convert_to_numpy(whole)[:, -1]
        difference = np.abs(outputs["logits"] - expected).max()
        if not difference <= CLOSE * np.ptp(expected):
            raise RuntimeError(f"The exported files do not match the model: logits differ by {difference:.2g}.")
        ids.append(int(expected.argmax()))
        inputs |= {"ids": np.array([ids[-1:]], "int32"), "place": inputs["place"] + 1, "cache": outputs["next_cache"]}
