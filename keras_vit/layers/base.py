"""The base class of the layers: what a configuration keeps of a layer, and of the layers that it builds."""

import functools

import keras
import numpy as np

from keras_vit.utils import other_words
from keras_vit.utils.configured import arguments_of
from keras_vit.utils.keras_private import sublayers, switched
from keras_vit.utils.typed import typed

LAST = "channels_last"  # for every layer of Keras that would ask keras.json for another order
STATES = ("quantization", "lora", "trainable", "frozen")  # what `parts` says of a layer


class Layer(keras.layers.Layer):
    """Base class of a layer with this configuration: its arguments, and what was changed in the layers inside it.

    Keras saves nothing of the layers that a layer makes in `build`: a copy or a loaded file would have them without
    their quantization, their LoRA and their frozen weights. Here `get_config` lists them in `parts`, and `build`
    restores them.

    Each argument is kept in an attribute of its name. Once built, a layer with weights takes only inputs as wide as the
    first one, also when a model is put together, where the shapes of most layers are known without a computation.

    Args:
        parts: Dictionary from the path of a layer inside, such as `"attention/qkv"`, to what was changed in it:
            `quantization`, `lora`, `trainable` and `frozen` (names of weights). `""` is the layer itself.
        metadata: Dictionary of plain values that is saved with the layer, such as class names; see `class_names`.
    """

    ndim = None  # axes of the first input, in layers that take one number of them only

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
    """Returns metadata with lists in place of NumPy's arrays, which a file of a model cannot hold."""
    lists = {name: np.asarray(value).tolist() for name, value in metadata.items() if isinstance(value, np.ndarray)}
    tracked = {name: list(value) for name, value in metadata.items() if isinstance(value, list)}  # by Keras
    return {**metadata, **lists, **tracked}


def check_channels_last(layer, name):
    """Raises ValueError if a layer, or one inside it, takes channels first, perhaps because keras.json says so."""
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
        if type(self).build is wrapper:  # else a subclass builds more
            inside = dict(_inside(self))
            for path, state in self.parts.items():
                if path in inside:
                    _restore(inside[path], **state)
            if not self.trainable:  # as when it is set on a layer that is built
                for part in sublayers(self, include_self=False):
                    part.trainable = False

    return wrapper


def _count_from_the_end(norm):
    """Lets the normalization of a last axis take inputs of any rank: Keras 3.16 counts it from the start in `build`."""
    if norm.axis == [len(norm.get_build_config()["input_shape"]) - 1]:
        norm.axis = [-1]


def _inside(layer, path=""):
    """Yields a layer and the layers inside it, at any depth, each with its path."""
    yield path, layer
    for part in sublayers(layer, include_self=False, recursive=False):
        yield from _inside(part, f"{path}/{part.name}" if path else part.name)


def _state(layer, owner):
    """Returns what was changed in a layer after it was built inside its owner."""
    state = {}
    if layer.quantization_mode is not None:
        config = keras.saving.serialize_keras_object(layer.quantization_config)
        state["quantization"] = {"mode": layer.quantization_mode, "config": config}
    if getattr(layer, "lora_enabled", False):
        state["lora"] = {"rank": layer.lora_rank, "lora_alpha": layer.lora_alpha}
    if not owner.trainable:
        return state  # nor is anything inside
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
