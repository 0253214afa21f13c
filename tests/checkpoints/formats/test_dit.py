import shutil

import pytest

from keras_vit import from_checkpoint
from tests.checkpoints.test_dit import rewritten
from tests.checkpoints.towers import GENERATION as FOLDER

pytestmark = pytest.mark.backend


@pytest.mark.parametrize(
    ("case", "config", "message"),
    [
        ("dit", {"activation_fn": "gelu"}, "A DiT with activation_fn='gelu' cannot be loaded"),
        ("dit", {"norm_type": "layer_norm"}, "A DiT with norm_type='layer_norm' cannot be loaded"),
        ("dit", {"num_attention_heads": None}, "num_heads"),
        ("dit", {"attention_head_dim": 4}, "config.json says 3 heads of 4 channels, and the weights have 24."),
    ],
)
def test_configurations_that_compute_something_else(case, config, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        from_checkpoint(rewritten(tmp_path, case, lambda tensors: None, config))


def test_what_no_file_says_is_asked_for(tmp_path):
    shutil.copy(FOLDER / "dit" / "checkpoint.safetensors", tmp_path)
    with pytest.raises(ValueError, match="needs its config.json in the same folder: no tensor shows num_att"):
        from_checkpoint(tmp_path / "checkpoint.safetensors")
    path = FOLDER / "dit_original" / "checkpoint.safetensors"
    with pytest.raises(ValueError, match="no DiT of width 24 is published: pass num_heads"):
        from_checkpoint(path)
    with pytest.raises(ValueError, match="A DiT is loaded at its own size. Received: image_size=16"):
        from_checkpoint(path, num_heads=3, image_size=16)
