"""Vectors of training images, next to a model's file, by whose distances it says "none of these"."""

import hashlib
import pathlib

import keras
import numpy as np

from keras_vit.models.outputs import logits_by
from keras_vit.models.unknown import ENERGY
from keras_vit.tasks.classify import unknown as rules
from keras_vit.utils import feeding
from keras_vit.utils.files import replacing

VECTORS = ".vectors.npz"  # ends the name of the file next to a model's


def with_vectors(model):
    """Returns the function from images to a model's logits and to the vectors that its head gets, two arrays."""
    both = keras.Model(model.inputs, [model.outputs[0], head_of(model).input])
    classes, as_logits = model.output_shape[-1], logits_by(model)

    def beside(images):
        outputs = both.predict_on_batch(images)
        return np.concatenate([keras.ops.convert_to_numpy(each).astype("float32") for each in outputs], axis=-1)

    def run(images):
        found = feeding.run(beside, images)
        return as_logits(found[:, :classes]), found[:, classes:]

    return run


def head_of(model):
    """Returns the layer whose input is a classifier's vector: `head`, else the last dense one."""
    named = [layer for layer in model.layers if layer.name == "head"]
    return (named or [layer for layer in model.layers if isinstance(layer, keras.layers.Dense)])[-1]


def vectors_file(path):
    """Returns the path of the vectors that a model's file has next to it."""
    return pathlib.Path(path).with_suffix(VECTORS)


def digest(vectors):
    """Returns the SHA-256 of kept vectors, by which a model knows its own."""
    return hashlib.sha256(np.ascontiguousarray(vectors, "float32").tobytes()).hexdigest()


def save(model, vectors, path):
    """Writes a model as a `.keras` file, and next to it the vectors that it tells unknown images by, if any."""
    with replacing(path, beside=(VECTORS,)) as temporary:
        model.save(temporary)
        if vectors is not None:
            np.savez(vectors_file(temporary), vectors=np.asarray(vectors, "float32"))


def read_vectors(file, rule):
    """Returns the vectors next to a model's file; ValueError or FileNotFoundError if they are not those of its rule."""
    path = vectors_file(file)
    if not path.is_file():
        raise FileNotFoundError(
            f"{str(file)!r} tells unknown images by vectors of training images, which must be in {str(path)!r}: "
            "calibrate the model again, or save what `calibrate` returned with its `save`."
        )
    try:
        with np.load(path, allow_pickle=False) as file:
            vectors = file["vectors"]
    except Exception as error:
        raise ValueError(f"{str(path)!r} cannot be read: {str(error).splitlines()[0]}") from None
    if vectors.ndim != 2 or digest(vectors) != rule.get("sha256"):
        raise ValueError(f"{str(path)!r} has the vectors of another model. Calibrate the model again.")
    return vectors


def vectors_of(trained):
    """Returns the vectors that a `Trained` tells unknown images by, as `read_vectors`; `None` if its rule has none."""
    rule = getattr(trained.task, "unknown", None)
    return read_vectors(trained.local or trained.file, rule) if rule and rule["rule"] != ENERGY else None


def viewing(trained, rule):
    """Returns the function from images to logits with a column more, the distances to kept vectors."""
    distances = rules.distance_to(vectors_of(trained), rule["k"])
    run = with_vectors(trained.model)

    def view(images):
        logits, vectors = run(images)
        return np.concatenate([logits, distances(vectors)[:, None]], axis=1)

    return view
