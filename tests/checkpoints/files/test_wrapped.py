"""timm's files inside transformers' and OpenCLIP's."""

import json
from functools import partial

import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint, load_weights, save_checkpoint, vit
from keras_vit.checkpoints import tables
from keras_vit.checkpoints.files import wrapped
from tests.checkpoints.helpers import SMALL, arrays_of, assert_same_weights, filled, original, weights, write

pytestmark = pytest.mark.backend

TOWER = {"timm_model_name": "vit_base_patch16_siglip_224", "timm_pool": "map", "image_size": 32}
PREPARED = {"mean": [0.1, 0.2, 0.3], "std": [0.4] * 3, "interpolation": "bicubic", "resize_mode": "squash"}


def wrap(folder, model, prefix, others=()):
    """Writes a timm file with a prefix, and other tensors beside."""
    save_checkpoint(model, folder / "plain.safetensors", format="timm")
    arrays = safetensors.numpy.load_file(folder / "plain.safetensors")
    (folder / "plain.safetensors").unlink()
    arrays = {f"{prefix}{name}": array for name, array in arrays.items()}
    safetensors.numpy.save_file(
        arrays | dict.fromkeys(others, np.zeros(2, "float32")), folder / "open_clip_model.safetensors"
    )
    return folder


def test_open_clip(tmp_path):
    model = filled(pooling="map", block={"gelu": "tanh"}, num_classes=0, tokens={"class_token": False}, image_size=32)
    path = wrap(tmp_path, model, "visual.trunk.", ["text.token_embedding.weight", "logit_scale"])
    config = {"model_cfg": {"vision_cfg": TOWER}, "preprocess_cfg": PREPARED}
    (path / wrapped.OPEN_CLIP).write_text(json.dumps(config))
    again = from_checkpoint(path, num_heads=3)
    assert_same_weights(weights(again), weights(model))
    rescale = again.get_layer("rescale")
    assert again.input_shape == (None, 32, 32, 3) and list(rescale.mean) == [0.1, 0.2, 0.3]
    assert rescale.metadata["evaluation"]["resize"] == "direct"


def test_transformers_wrapper(tmp_path):
    model = filled(image_size=32, num_classes=7)
    path = wrap(tmp_path, model, "timm_model.")
    config = {"architecture": "vit_tiny_patch16_224", "model_type": "timm_wrapper", "model_args": {"num_heads": 3}}
    (path / "config.json").write_text(json.dumps(config))
    assert_same_weights(weights(from_checkpoint(path)), weights(model))


@pytest.mark.parametrize(
    "config, message",
    [
        ({"model_cfg": None}, "open_clip_config.json' cannot be read"),
        ({"model_cfg": {"vision_cfg": TOWER}, "preprocess_cfg": {"resize_mode": "longest"}}, "Received: 'longest'"),
    ],
)
def test_its_configuration_is_checked(config, message, tmp_path):
    path = wrap(tmp_path, filled(image_size=32), "visual.trunk.")
    (path / wrapped.OPEN_CLIP).write_text(json.dumps(config))
    with pytest.raises(ValueError, match=message):
        from_checkpoint(path)
    assert wrapped.of_open_clip({"model_cfg": {"vision_cfg": TOWER}})["pretrained_cfg"]["mean"] == tables.CLIP["mean"]


PATCHES = "patch_embed.proj.weight"


def test_nothing_else_is_unwrapped():
    for names in ([PATCHES, "head.weight"], ["a/b", "c"]):
        assert wrapped.unwrap(names) == ({name: name for name in names}, "", 0, [])
    assert wrapped.of_open_clip({"model_cfg": {}}) == {}


@pytest.mark.parametrize(
    "prefix", ["module.", "backbone.", "_orig_mod.", "module._orig_mod.", "model.net.", "encoder.", "visual."]
)
def test_prefixes_are_taken_off(prefix):
    for plain in (
        [PATCHES, "head.weight"],
        ["vit.embeddings.patch_embeddings.projection.weight", "classifier.bias"],
        ["vision_model.embeddings.patch_embedding.weight", "text_model.x"],
        ["embeddings.patch_embeddings.weight", "model.layer.0.norm1.weight"],
        ["conv_proj.weight", "encoder.ln.weight"],
    ):
        found = wrapped.unwrap([f"{prefix}{name}" for name in plain] + ["n_averaged"])
        assert found == ({name: f"{prefix}{name}" for name in plain}, prefix, 1, [])


def test_what_is_outside_a_prefix_is_named_or_known():
    inside = [f"module.backbone.{name}" for name in (PATCHES, "norm.weight")]
    for others, kept, said in (
        (["module.head.weight", "module.head.bias"], ["head.bias", "head.weight"], None),  # a head on a backbone
        (["module.head.mlp.0.weight", "module.dino_head.x"], ["head.mlp.0.weight"], None),
        (["module.neck.x", "text.y", "transformer.resblocks.0.z", "logit_scale"], [], None),
        (["module.criterion.weight", "fc.weight"], [], "Left out: fc.weight, module.criterion.weight."),
    ):
        names, prefix, _, remarks = wrapped.unwrap([*inside, *others])
        assert prefix == "module.backbone." and sorted(names) == sorted([PATCHES, "norm.weight", *kept])
        assert [remark.partition("loaded. ")[2] for remark in remarks] == ([said] if said else [])


@pytest.mark.parametrize(
    "places, wanted",
    [
        (["state_dict", "state_dict_ema"], "state_dict_ema"),  # timm's `load_checkpoint`
        (["model", "model_ema.module"], "model_ema.module"),
        (["model", "ema_state_dict"], "ema_state_dict"),
        (["model", "averaged_model"], "averaged_model"),
        (["student.backbone.", "teacher.backbone."], "teacher.backbone."),  # DINO's `--checkpoint_key`
        (["encoder", "target_encoder"], "target_encoder"),
        (["module.base_encoder.", "module.momentum_encoder."], "module.base_encoder."),  # MoCo v3's `main_lincls.py`
        (["encoder_k.", "encoder_q."], "encoder_q."),
        (["current_model_state", "state_dict"], "state_dict"),  # Lightning's `WeightAveraging`
    ],
)
def test_of_several_sets_of_weights_the_averaged_ones_are_loaded(places, wanted):
    assert wrapped.preferred(places) == wanted
    if wanted.endswith("."):
        names, prefix, _, remarks = wrapped.unwrap([place + PATCHES for place in places])
        assert prefix == wanted and list(names) == [PATCHES]
        assert remarks == [wrapped.choice(places, wanted)] and f"Those of {wanted[:-1]} are loaded" in remarks[0]


def test_several_models_without_a_rule_are_refused():
    with pytest.raises(ValueError, match="of several models: left, right. Save those to load in a file alone"):
        wrapped.unwrap([f"{side}.{PATCHES}" for side in ("left", "right")])


@pytest.mark.parametrize(
    "name",
    [
        "base_model.model.vit.encoder.layer.0.attention.attention.query.lora_A.weight",
        "vit.encoder.layer.0.attention.attention.query.base_layer.weight",
        "base_model.model.classifier.modules_to_save.default.weight",
    ],
)
def test_adapters_are_to_be_merged_first(name, tmp_path):
    path = tmp_path / "adapter_model.safetensors"
    safetensors.numpy.save_file({name: np.zeros((2, 2), "float32")}, path)
    with pytest.raises(ValueError, match=r"adapter of PEFT. Merge it into its base model first: model.merge_and_unl"):
        from_checkpoint(path)


def test_a_prefix_in_every_format_gives_the_same_model(tmp_path):
    arrays = arrays_of("timm_vit")
    for name in ("file.safetensors", "file.npz"):
        path = write(tmp_path / name, {f"module.model.{key}": array for key, array in arrays.items()})
        assert_same_weights(weights(from_checkpoint(path, num_heads=3)), weights(original("timm_vit")))
        path = write(
            tmp_path / name, {f"net.{key}": a for key, a in arrays.items()} | {"loss.weight": np.ones(1, "float32")}
        )
        for load in (partial(from_checkpoint, num_heads=3), partial(load_weights, vit(**SMALL))):
            with pytest.warns(UserWarning, match="file.* Only its Vision Transformer is loaded. Left out: loss.weight"):
                load(path)


def test_who_writes_about_images():
    table = "text_decoder.bert.embeddings.word_embeddings.weight"
    attends = "text_decoder.bert.encoder.layer.0.crossattention.self.key.weight"
    assert wrapped.writes([table, attends]) and not wrapped.writes([table, attends, "text_encoder.x"])
    of_gpt2 = ["decoder.transformer.wte.weight", "decoder.transformer.h.0.crossattention.c_attn.weight"]
    assert wrapped.writes(of_gpt2) and not wrapped.writes(of_gpt2[:1])
    pair = {"model_type": wrapped.PAIR, "decoder": {"model_type": "bert"}}
    assert "'bert', is none that can be loaded" in wrapped.other_decoder(pair)[0]
    assert wrapped.other_decoder({"model_type": "vit"}) == []
