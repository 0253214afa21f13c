"""Heads that are not one linear layer with a bias: the original's logits, or a word."""

import json
import shutil
import warnings

import numpy as np
import pytest

from keras_vit import Regress, from_checkpoint, load_weights, predict, save_checkpoint, vit
from keras_vit.models import kinds
from keras_vit.models.metadata import keep
from tests.checkpoints.helpers import GOLDEN, SMALL, arrays_of, io_of, logits, weights, write
from tests.marks import few

pytestmark = pytest.mark.backend

HEADS = {"timm_vit": "head", "hf_vit": "classifier", "hf_dinov2": "classifier"}
NORM = {f"0.{part}": np.ones(24, "float32") for part in ("running_mean", "running_var")}
KNOWN = {"mean": 0.5, "std": 0.5}


def written(folder, case, head):
    """Writes a golden file with other tensors as its head."""
    arrays = {name: array for name, array in arrays_of(case).items() if not name.startswith(f"{HEADS[case]}.")}
    if (GOLDEN / case / "config.json").exists():
        shutil.copy(GOLDEN / case / "config.json", folder)
    return write(folder / "model.safetensors", arrays | {f"{HEADS[case]}.{name}": a for name, a in head.items()})


def linear(case):
    return {name: arrays_of(case)[f"{HEADS[case]}.{name}"] for name in ("weight", "bias")}


@pytest.mark.parametrize("case", HEADS)
def test_a_head_without_a_bias(case, tmp_path):
    path = written(tmp_path, case, {"weight": linear(case)["weight"]})
    x, expected = io_of(case)
    model = from_checkpoint(path, num_heads=3, **KNOWN)
    assert np.abs(logits(model, x) + linear(case)["bias"] - expected).max() <= 1e-4
    assert not weights(model)["head/bias"].any()


@pytest.mark.parametrize("case", HEADS)
def test_a_linear_layer_in_a_sequence(case, tmp_path):
    x, expected = io_of(case)
    for i in (0, 1):
        path = written(tmp_path, case, {f"{i}.{name}": array for name, array in linear(case).items()})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = from_checkpoint(path, num_heads=3, **KNOWN)
        assert np.abs(logits(model, x) - expected).max() <= 1e-4
        assumed = [
            f"num_classes=7 (dropout before {HEADS[case]}.1.weight" in str(warning.message) for warning in caught
        ]
        assert assumed == [True] * i  # an activation would have no tensors either


OTHER = {
    "a norm, as MAE's linear probe": NORM | {"1.weight": np.ones((7, 24), "float32"), "1.bias": np.ones(7, "float32")},
    "two layers": {"0.weight": np.ones((8, 24), "float32"), "2.weight": np.ones((7, 8), "float32")},
    "another name": {"fc.weight": np.ones((7, 24), "float32")},
}


@few(3)
@pytest.mark.parametrize("case, head", [*zip(HEADS, OTHER), ("timm_vit", "two layers")])
def test_other_heads_are_named(case, head, tmp_path):
    path = written(tmp_path, case, OTHER[head])
    said = f"has a head that is not one linear layer, and cannot be loaded: {HEADS[case]}[.]"
    for options, units, then in (({}, 24, "no head: it returns features"), ({"num_classes": 7}, 7, "a new head")):
        with pytest.warns(UserWarning, match=f"{said}.*The model has {then}"):
            model = from_checkpoint(path, num_heads=3, **KNOWN, **options)
        assert model.output_shape == (None, units)
    with pytest.raises(ValueError, match=said):
        from_checkpoint(path, num_heads=3, head="require", num_classes=7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for options in ({"num_classes": 0}, {"head": "new", "num_classes": 7}):
            from_checkpoint(path, num_heads=3, **KNOWN, **options)
    if case == "timm_vit":
        with pytest.raises(ValueError, match="a head for another task than the model"):
            load_weights(vit(**SMALL, block={"gelu": "exact"}), path)


def test_heads_of_pretraining_are_passed_over(tmp_path):
    """DINO's and iBOT's, whose files show by them whose they are."""
    head = {name: np.ones((2, 24), "float32") for name in ("mlp.0.weight", "last_layer.weight_v", "mlp2.0.weight")}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = from_checkpoint(written(tmp_path, "timm_vit", head), num_heads=3)
    rescale = model.get_layer("rescale")
    assert model.output_shape == (None, 24) and rescale.mean == [0.485, 0.456, 0.406]
    assert rescale.metadata["format"] == "timm-dino" and rescale.metadata["evaluation"]["crop_pct"] == 0.875


MULTI, PLAIN = "multi_label_classification", "single_label_classification"
STATED = [  # what a configuration says, the number of outputs, and their kind: transformers' pipeline has these rules
    ("hf_vit", {"problem_type": MULTI}, 7, "labels"),
    ("hf_vit", {"problem_type": PLAIN}, 7, "classes"),
    ("hf_vit", {"problem_type": "regression"}, 7, "numbers"),
    ("hf_vit", {"problem_type": None}, 7, "classes"),
    ("hf_vit", {}, 1, "labels"),
    ("hf_vit", {"problem_type": "regression"}, 1, "numbers"),
    ("hf_vit", {"problem_type": MULTI, "id2label": None}, 7, "labels"),
    ("hf_dinov2", {"problem_type": MULTI}, 7, "labels"),
    ("timm_vit", {"problem_type": MULTI}, 7, "labels"),
    ("timm_vit", {"pretrained_cfg": {"multi_label": True}}, 7, "labels"),
]


def stating(folder, case, config, classes):
    """Writes a golden file with a number of outputs, whose configuration states more."""
    head = {name: array[:classes] for name, array in linear(case).items()}
    path = written(folder, case, head)
    beside = folder / "config.json"
    known = json.loads(beside.read_text()) if beside.exists() else {}
    beside.write_text(json.dumps({k: v for k, v in (known | config).items() if k != "id2label" or v}))
    return path


@few(8)
@pytest.mark.parametrize("case, config, classes, kind", STATED)
def test_what_the_outputs_are_is_as_the_configuration_states(case, config, classes, kind, tmp_path):
    path = stating(tmp_path, case, config, classes)
    model = from_checkpoint(path, num_heads=3, **KNOWN)
    assert kinds.name_of(model) == kind and model.output_shape == (None, classes)
    assert kinds.name_of(from_checkpoint(path, num_heads=3, **KNOWN, num_classes=0)) == "classes"
    assert kinds.name_of(from_checkpoint(path, num_heads=3, **KNOWN, num_classes=5)) == "classes"
    other = vit(**{**SMALL, "num_classes": classes}) if case == "timm_vit" else None
    if other is not None:
        kinds.note(other, "numbers")
        assert kinds.name_of(load_weights(other, path)) == kind


def test_another_problem_is_refused(tmp_path):
    path = stating(tmp_path, "hf_vit", {"problem_type": "ranking"}, 7)
    with pytest.raises(ValueError, match="`problem_type` in the .* one of single_label.*Received: 'ranking'"):
        from_checkpoint(path, num_heads=3)
    from_checkpoint(path, num_heads=3, head="new", num_classes=2)


@pytest.mark.parametrize("format", ["huggingface", "timm"])
@pytest.mark.parametrize("kind", ["labels", "numbers", "classes"])
def test_what_the_outputs_are_is_written(format, kind, tmp_path):
    model = vit("Ti/16", image_size=32, depth=1, num_classes=3)
    kinds.note(model, kind)
    if kind == "labels":
        keep(model, thresholds=[0.1, 0.5, 0.9])
    place = save_checkpoint(model, tmp_path / "it", format=format)
    stated = json.loads((place / "config.json").read_text()).get("problem_type")
    assert stated == {"labels": MULTI, "numbers": "regression", "classes": None}[kind]
    read = from_checkpoint(place)
    assert kinds.name_of(read) == kind
    assert read.get_layer("rescale").metadata.get("thresholds") == ([0.1, 0.5, 0.9] if kind == "labels" else None)


def test_numbers_are_written_in_their_units(tmp_path):
    model = Regress(names=("age", "height"), mean=(5.0, 60.0), deviation=(2.0, 30.0)).model(
        variant="Ti/16", image_size=32, depth=1
    )
    kinds.note(model, "numbers")
    kernel = model.get_layer("head").kernel
    kernel.assign(np.random.default_rng(0).normal(size=kernel.shape))
    x = np.random.default_rng(0).uniform(0, 255, (2, 32, 32, 3)).astype("float32")
    read = from_checkpoint(save_checkpoint(model, tmp_path / "it", format="huggingface"))
    assert np.abs(logits(read, x) - logits(model, x)).max() <= 1e-3 and kinds.name_of(read) == "numbers"
    with pytest.warns(UserWarning, match="does not record metadata={'gives': {'head': 'numbers'}}"):
        save_checkpoint(model, tmp_path / "it.npz")


def test_layers_after_a_head_are_refused(tmp_path):
    import keras

    model = vit("Ti/16", image_size=32, depth=1, num_classes=3)
    for last, said in ((keras.layers.Activation("sigmoid", name="end"), "and end"), (keras.layers.Softmax(), None)):
        whole = keras.Model(model.input, last(model.output))
        if said:
            with pytest.raises(ValueError, match=f"classifier ends in its head. Received: .*{said}"):
                save_checkpoint(whole, tmp_path / "it", format="timm")
        else:
            save_checkpoint(whole, tmp_path / "it", format="timm")


def test_predict_answers_by_the_kind(tmp_path):
    from PIL import Image

    Image.fromarray(np.zeros((32, 32, 3), "uint8")).save(tmp_path / "a.png")
    for kind, count, expected in (("labels", 1, [("0", 0.5)]), ("numbers", 2, [("0", 0.0), ("1", 0.0)])):
        model = vit("Ti/16", image_size=32, depth=1, num_classes=count)
        kinds.note(model, kind)
        assert predict(model, tmp_path / "a.png") == [expected]


@pytest.mark.parametrize("names", [{"0": "cat", "1": "dog"}, ["cat"] * 8, {str(i): i for i in range(7)}])
def test_names_of_other_outputs_are_left_out_and_said_so(names, tmp_path):
    path = stating(tmp_path, "hf_vit", {"id2label": names}, 7)
    with pytest.warns(UserWarning, match="class names of .* are left out: there must be a text for each of 7 outputs"):
        model = from_checkpoint(path, num_heads=3, **KNOWN)
    assert "labels" not in model.get_layer("rescale").metadata
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        from_checkpoint(path, num_heads=3, **KNOWN, num_classes=2)
