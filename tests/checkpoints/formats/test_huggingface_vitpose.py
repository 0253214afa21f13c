import json
import shutil

import pytest

from keras_vit import from_checkpoint
from keras_vit.models.map_heads import head_of
from tests.checkpoints.formats.test_huggingface_depth import DEPTH, copied


@pytest.mark.parametrize(
    "changes, pattern",
    [
        (dict(backbone=dict(num_experts=6)), "ViTPose. has experts"),
        (dict(backbone=dict(out_indices=[1])), "last block, .2.. Received: out_indices=.1."),
        (dict(backbone=dict(model_type="vit")), "`model_type` must be vitpose.*backbone 'vit'"),
        (dict(backbone=dict(hidden_act="swish")), "hidden_act"),
        (dict(use_simple_decoder=False), "use_simple_decoder"),
        (dict(model_type="vit"), "`model_type` must be vitpose"),
    ],
)
def test_what_config_json_says_is_computed_or_refused(changes, pattern, tmp_path):
    copied("vitpose", tmp_path, **changes)
    with pytest.raises(ValueError, match=pattern):
        from_checkpoint(tmp_path)


def test_a_bare_file_is_refused(tmp_path):
    shutil.copy(DEPTH / "vitpose" / "checkpoint.safetensors", tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="put the source's config.json next to the file"):
        from_checkpoint(tmp_path, num_heads=3)


def test_images_are_crops_of_its_size(tmp_path):
    copied("vitpose", tmp_path)
    stated = {"image_processor_type": "VitPoseImageProcessor", "size": {"height": 64, "width": 48}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(stated | {"normalize_factor": 200.0}))
    model = from_checkpoint(tmp_path)
    assert model.input_shape == (None, 64, 48, 3) and model.output_shape == (None, 16, 12, 17)
    assert head_of(model)["scale"] == 4 and model.get_layer("stem").pixels == 2
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(stated | {"do_affine_transform": False}))
    with pytest.raises(ValueError, match="processor must have .*do_affine_transform"):
        from_checkpoint(tmp_path)
