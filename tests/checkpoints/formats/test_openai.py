"""CLIP's own names: the golden model of transformers under them gives the same logits."""

import json
import re

import numpy as np
import pytest

from keras_vit import from_checkpoint
from keras_vit.checkpoints.tables import CLIP
from tests.checkpoints.helpers import arrays_of, io_of, logits, write

pytestmark = pytest.mark.backend

NAMES = [
    (r"^vision_model\.embeddings\.class_embedding$", "visual.class_embedding"),
    (r"^vision_model\.embeddings\.position_embedding\.weight$", "visual.positional_embedding"),
    (r"^vision_model\.embeddings\.patch_embedding\.", "visual.conv1."),
    (r"^vision_model\.pre_layrnorm\.", "visual.ln_pre."),
    (r"^vision_model\.post_layernorm\.", "visual.ln_post."),
    (r"^vision_model\.encoder\.layers\.(\d+)\.layer_norm([12])\.", r"visual.transformer.resblocks.\1.ln_\2."),
    (r"^vision_model\.encoder\.layers\.(\d+)\.self_attn\.", r"visual.transformer.resblocks.\1.attn."),
    (r"^vision_model\.encoder\.layers\.(\d+)\.mlp\.fc1\.", r"visual.transformer.resblocks.\1.mlp.c_fc."),
    (r"^vision_model\.encoder\.layers\.(\d+)\.mlp\.fc2\.", r"visual.transformer.resblocks.\1.mlp.c_proj."),
]


def native():
    """Returns the tensors of the golden CLIP as CLIP's own code names them, with some of the text tower's."""
    arrays = {name: array for name, array in arrays_of("hf_clip").items() if "position_ids" not in name}
    for pattern, name in NAMES:
        arrays = {re.sub(pattern, name, key): array for key, array in arrays.items()}
    arrays["visual.proj"] = arrays.pop("visual_projection.weight").T
    for name in [name for name in arrays if ".q_proj." in name]:
        parts = [arrays.pop(name.replace(".q_proj.", f".{part}_proj.")) for part in "qkv"]
        arrays[name.replace(".q_proj.", ".in_proj_")] = np.concatenate(parts)
    others = ["logit_scale", "positional_embedding", "transformer.resblocks.0.ln_1.weight", "ln_final.bias"]
    return arrays | dict.fromkeys(others, np.ones(2, "float32"))


def test_its_files_are_read(tmp_path):
    path = write(tmp_path / "open_clip_model.safetensors", native())
    x, expected = io_of("hf_clip")
    model = from_checkpoint(path, num_heads=3, block={"gelu": "quick"})
    assert np.abs(logits(model, x) - expected).max() <= 1e-4
    assert model.get_layer("rescale").mean == CLIP["mean"]
    with pytest.warns(UserWarning, match="block={'gelu': 'exact'} .files of CLIP have 'exact' or 'quick'"):
        from_checkpoint(path, num_heads=3)
    config = {"vision_cfg": {"image_size": 24, "width": 24, "head_width": 8, "layers": 2}, "quick_gelu": True}
    (tmp_path / "open_clip_config.json").write_text(json.dumps({"model_cfg": config}))
    assert np.abs(logits(from_checkpoint(tmp_path), x) - expected).max() <= 1e-4


def test_a_perception_encoder_is_refused(tmp_path):
    arrays = {name: array for name, array in native().items() if name != "visual.proj"}
    with pytest.raises(ValueError, match="must have ln_post and proj: without them it is a Perception Encoder"):
        from_checkpoint(write(tmp_path / "file.safetensors", arrays), num_heads=3)
