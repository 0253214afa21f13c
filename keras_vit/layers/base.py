"""The base class of the layers: their configuration, and the state of the layers that they build."""

import functools

import keras
import numpy as np

from keras_vit.utils import other_words
from keras_vit.utils.configured import arguments_of
from keras_vit.utils.keras_private import sublayers, switched
from keras_vit.utils.typed import typed

LAST = "channels_last"  # passed to Keras layers, which would else take the order from keras.json
STATES = ("quantization", "lora", "trainable", "frozen")  # keys of a layer's entry in `parts`


class Layer(keras.layers.Layer):
    """Base class of the layers. Its configuration has the arguments, and changes to the layers inside.

    Keras does not save changes to the layers that a layer makes in `build`: a copy or a loaded file would lack their
    quantization, LoRA and frozen weights. Here `get_config` lists these changes in `parts`, and `build` restores them.

    Each argument is stored in an attribute of the same name. Once built, a layer with weights takes only inputs of the
    same width. This is checked when a model is built, too.

    Args:
        parts: Dictionary from the path of an inner layer, such as `"attention/qkv"`, to its changes: `quantization`,
            `lora`, `trainable` and `frozen` (names of weights). `""` is the layer itself.
        metadata: Dictionary of plain values that is saved with the layer, such as class names; see `class_names`.
    """

    ndim = None  # rank of the first input, for layers that take only one rank

    def __init__(self, *, parts: dict | None = None, metadata: dict | None = None, **kwargs):
        super().__init__(**kwargs)
        self.parts = parts or {}
        self.metadata = dict(metadata or {})
        if self.ndim is not None:
            self.input_spec = keras.layers.InputSpec(ndim=self.ndim)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = other_words.layer_arguments(typed(cls.__init__))
        if "build" in vars(cls):
            cls.build = _restoring(cls.build)

    def get_config(self):
        names = [name for name in arguments_of(type(self), Layer) if hasattr(self, name)]
        config = {**super().get_config(), **{name: getattr(self, name) for name in names}}
        states = {path: state for path, layer in _inside(self) if (state := _state(layer, self))}
        parts = states if self.built else dict(self.parts)
        more = {"parts": parts, "metadata": plain(self.metadata)}
        return config | {name: value for name, value in more.items() if value}


def plain(metadata):
    """Returns metadata with lists in place of NumPy arrays, which cannot be saved in a model's file."""
    lists = {name: np.asarray(value).tolist() for name, value in metadata.items() if isinstance(value, np.ndarray)}
    tracked = {name: list(value) for name, value in metadata.items() if isinstance(value, list)}  # by Keras
    return {**metadata, **lists, **tracked}


def check_channels_last(layer, name):
    """Raises ValueError if a layer, or a layer inside it, takes channels first, such as by a setting of keras.json."""
    first = [part.name for part in sublayers(layer) if getattr(part, "data_format", None) == "channels_first"]
    if first:
        raise ValueError(
            f"Images have their channels last here: pass data_format='channels_last' to the layers of `{name}`. "
            f"Received: {first[0]!r} with channels_first"
        )


def _restoring(build):
    @functools.wraps(build)
    def wrapper(self, *args, **kwargs):
        build(self, *args, **kwargs)
        shape = (*args, *kwargs.values())[0]
        if self.weights and isinstance(shape, (tuple, list)) and len(shape) > 2 and isinstance(shape[-1], int):
            self.input_spec = keras.layers.InputSpec(ndim=self.ndim, axes={-1: shape[-1]})
        for norm in sublayers(self):
            if isinstance(norm, keras.layers.LayerNormalization):
                _count_from_the_end(norm)
        if type(self).build is wrapper:  # else a subclass is not completely built yet
            inside = dict(_inside(self))
            for path, state in self.parts.items():
                if path in inside:
                    _restore(inside[path], **state)
            if not self.trainable:  # as Keras does for a built layer
                for part in sublayers(self, include_self=False):
                    part.trainable = False

    return wrapper


def _count_from_the_end(norm):
    """Lets a normalization of the last axis take inputs of any rank: Keras 3.16 fixes the rank in `build`."""
    if norm.axis == [len(norm.get_build_config()["input_shape"]) - 1]:
        norm.axis = [-1]


def _inside(layer, path=""):
    """Yields the path and the layer of a layer and all layers inside it, at any depth."""
    yield path, layer
    for part in sublayers(layer, include_self=False, recursive=False):
        yield from _inside(part, f"{path}/{part.name}" if path else part.name)


def _state(layer, owner):
    """Returns the changes to a layer since its owner built it, a dictionary for `parts`."""
    state = {}
    if layer.quantization_mode is not None:
        config = keras.saving.serialize_keras_object(layer.quantization_config)
        state["quantization"] = {"mode": layer.quantization_mode, "config": config}
    if getattr(layer, "lora_enabled", False):
        state["lora"] = {"rank": layer.lora_rank, "lora_alpha": layer.lora_alpha}
    if not owner.trainable:
        return state  # then no inner layer is trainable either
    if not layer.trainable:
        return {**state, "trainable": False}
    frozen = [variable.name for variable in switched(layer) if not variable.trainable]
    return {**state, "frozen": frozen} if frozen else state


def _restore(layer, quantization=None, lora=None, trainable=True, frozen=()):
    if quantization is not None:
        config = keras.saving.deserialize_keras_object(quantization["config"])
        layer.quantize(quantization["mode"], config=config)
    if lora is not None:
        layer.enable_lora(**lora)
    if not trainable:
        layer.trainable = False
    for variable in switched(layer):
        if variable.name in frozen:
            variable.trainable = False
