"""Heads that are not one linear layer with a bias: the original's logits, or a word."""

import shutil
import warnings

import numpy as np
import pytest

from keras_vit import from_checkpoint, load_weights, vit
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
