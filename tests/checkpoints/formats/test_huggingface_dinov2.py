import json

import numpy as np
import pytest

from keras_vit import from_checkpoint
from keras_vit.checkpoints.formats import huggingface_dinov2
from keras_vit.models.options import flat
from tests.checkpoints.helpers import GOLDEN, arrays_of, original, read_hub, weights, write

pytestmark = pytest.mark.backend


def test_detect():
    for case in ("hf_dinov2", "hf_dinov2_registers", "hf_vit"):
        names = arrays_of(case)
        found = [
            form.name for form in (huggingface_dinov2.FORMAT, huggingface_dinov2.WITH_REGISTERS) if form.detect(names)
        ]
        assert found == {"hf_dinov2": ["huggingface-dinov2"], "hf_vit": []}.get(case, ["huggingface-dinov2-registers"])


def test_architecture():
    arguments, evaluation, _ = read_hub(huggingface_dinov2, "hf_dinov2_registers")
    expected = dict(
        tokens={"registers": 2},
        block={"swiglu": False},
        mlp_dim=48,
        pooling="token+gap",
        num_classes=7,
        mean=[0.485, 0.456, 0.406],
    )
    assert flat(arguments).items() >= flat(expected).items()
    assert evaluation["crop_pct"] == 0.875 and evaluation["interpolation"] == "bicubic"
    arguments, *_ = read_hub(huggingface_dinov2, "hf_dinov2", drop=("classifier",))
    assert (arguments["pooling"], arguments["num_classes"], arguments["block"]["swiglu"]) == ("token", 0, True)


def test_the_encoder_of_a_depth_model(tmp_path):
    arrays = arrays_of("hf_dinov2")
    inside = {
        name.replace("dinov2.", "backbone."): array for name, array in arrays.items() if not name.startswith("class")
    }
    inside |= {f"{part}.conv.weight": np.ones((2, 2, 1, 1), "float32") for part in ("neck", "head")}
    config = json.loads((GOLDEN / "hf_dinov2" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "depth_anything", "backbone_config": config}))
    write(tmp_path / "model.safetensors", inside)
    model, whole = from_checkpoint(tmp_path), original("hf_dinov2")
    assert model.output_shape == (None, 24)
    for path, array in weights(model).items():
        np.testing.assert_array_equal(array, weights(whole)[path])
