"""Every public function refuses an argument of a wrong type with one clear error, before it does anything."""

import contextlib
import functools
import inspect
import itertools
import re

import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import vit
from keras_vit.models.options import OPTIONS, flat, nested
from tests.arguments import LAYERS, PIXELS, TAKES, model
from tests.marks import slow
from tests.test_house import PUBLIC

pytest.importorskip("tensorflow")

ARRAYS = {
    "an array": np.full((2, 3), 1234.5),
    "a tensor": keras.ops.full((2, 3), 1234.5),
    "a list of arrays": [np.full((40, 3), 1234.5)] * 2,
}
ODD = {
    "a number": 3.5,
    "text": "nonsense",
    "bytes": b"\xff",
    "an object": object(),
    "a list": [None],
    "a dictionary": {1: 2},
}
SENTENCE = "Received|There (is|are) no|must be|needs|no such|is no |cannot be|holds? no|contains? no"


def state(model):
    """Returns what a refused call must leave as it was: the model's variables, and which of them are trainable."""
    return [(id(variable), variable.path, variable.trainable) for variable in model.variables]


TYPED = "Augment Data Optim Recipe Task Answer Caption CaptionClips Classify ClassifyClips Compress Contrast "
TYPED += "ContrastClips Depth Detect DetectClips Generate Pretrain PretrainClips Regress Restore Segment Translate"
RECIPES = set(TYPED.split())  # typed fields: test_checked
TABLES = {"HYBRIDS", "VARIANTS", "MaskedLoss"}  # without arguments


def test_the_table_is_complete():
    assert set(TAKES) | set(LAYERS) | RECIPES | TABLES == set(PUBLIC.split())


def faults(name, make, function=None):
    """Calls a function with each argument replaced by each odd value; returns the calls without a clear error."""
    found, function = [], function or getattr(keras_vit, name)
    for argument in make():
        for kind, value in ODD.items():
            if name.startswith("export_") and (argument, kind) == ("path", "text"):
                continue  # right, and a whole export
            arguments = make() | {argument: value}
            words = [arguments.pop(name) for name in ("words", "files") if name in arguments]
            before, call = state(model()), f"{name}({argument}={kind})"
            try:
                function(*words, **arguments)
            except (ValueError, TypeError, OSError, ImportError) as error:
                message = str(error)
                if not re.search(SENTENCE, message) or "\n" in message or len(message) > 700:
                    found.append(f"{call}: {type(error).__name__}: {message[:150]}")
            except Exception as error:
                found.append(f"{call}: {type(error).__name__}: {str(error)[:150]}")
            else:  # the value was valid, and the model may have changed
                model.cache_clear()
                continue
            if state(model()) != before:
                found.append(f"{call} changed the model")
                model.cache_clear()
    return found


def test_functions(tmp_path, monkeypatch):
    found = []
    for name, make in TAKES.items():
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        found += faults(name, make)
    assert not found, "\n".join(found)


@slow
def test_no_error_shows_the_values_of_an_array(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = []
    for name, make in TAKES.items():
        for argument, (kind, value) in itertools.product(make(), ARRAYS.items()):
            arguments = make() | {argument: value}
            words = [arguments.pop(name) for name in ("words", "files") if name in arguments]
            try:
                getattr(keras_vit, name)(*words, **arguments)
            except Exception as error:
                found = re.search(r"array\(|numpy=|(1234.5\D+){7}", message := str(error))
                shown += [f"{name}({argument}={kind}): {message[:200]}"] if found or "\n" in message else []
            else:
                model.cache_clear()
    assert not shown, "\n".join(shown)


def test_options_of_vit():
    options = flat(OPTIONS)
    small = dict(variant="mu/4", image_size=8, pooling="map")
    assert not (found := faults("vit", options.copy, lambda **given: vit(**small, **nested(given)))), "\n".join(found)


def test_layers():
    found = [fault for name, arguments in LAYERS.items() for fault in faults(name, functools.partial(dict, arguments))]
    assert not found, "\n".join(found)


def test_arguments_of_the_table_are_the_functions():
    for name, make in TAKES.items():
        known = inspect.signature(getattr(keras_vit, name)).parameters
        assert set(make()) <= set(known), name


def test_models_of_other_kinds():
    inputs = keras.Input((8, 8, 3))
    plain = keras.Model(inputs, keras.layers.Flatten()(inputs), name="plain")
    for name in ["attention_maps", "attention_rollout", "features", "plot_attention", "preprocess"]:
        more = {} if name == "features" else {"images": PIXELS}
        with contextlib.suppress(ValueError) if name == "preprocess" else pytest.raises(ValueError, match=SENTENCE):
            getattr(keras_vit, name)(plain, **more)
