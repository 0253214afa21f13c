"""Files whose tensors fit but whose function differs: refused, or a warning that names what was assumed."""

import json
import warnings
from functools import partial

import numpy as np
import pytest

from keras_vit import from_checkpoint, load_weights, save_checkpoint, vit
from keras_vit.models.options import merged
from tests.checkpoints.helpers import SMALL, arrays_of, assert_same_weights, filled, unexpected, weights, write

pytestmark = pytest.mark.filterwarnings("ignore:The timm format does not record")

HEADS = {"num_heads": 3}


def without(arrays, *starts):
    return {name: array for name, array in arrays.items() if not name.startswith(starts)}


def pooled(arrays):
    """Adds attention pooling."""
    width, rng = 24, np.random.default_rng(0)
    shapes = {"latent": (1, 1, width), "q.weight": (width, width), "q.bias": (width,), "kv.weight": (2 * width, width)}
    shapes |= {"kv.bias": (2 * width,), "proj.weight": (width, width), "proj.bias": (width,), "norm.weight": (width,)}
    shapes |= {"norm.bias": (width,), "mlp.fc1.weight": (48, width), "mlp.fc1.bias": (48,)}
    shapes |= {"mlp.fc2.weight": (width, 48), "mlp.fc2.bias": (width,)}
    return arrays | {f"attn_pool.{name}": rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def clip(arrays):
    norm = {f"norm_pre.{part}": np.ones(24, "float32") for part in ("weight", "bias")}
    return without(arrays, "patch_embed.proj.bias") | norm


def gated(arrays, times=2):
    """Returns the tensors of an EVA-02 tiny."""
    changed = without(arrays, "blocks.0.mlp.fc1", "blocks.1.mlp.fc1")
    for i in range(2):
        query, _, value = np.split(changed.pop(f"blocks.{i}.attn.qkv.bias"), 3)
        changed |= {f"blocks.{i}.attn.q_bias": query, f"blocks.{i}.attn.v_bias": value}
        for part in ("weight", "bias"):
            name = f"blocks.{i}.mlp.fc1.{part}"
            changed[name] = np.concatenate([arrays[name]] * times)
    return changed


def bare_file(change, tmp_path, name="file.safetensors"):
    return write(tmp_path / name, change(arrays_of("timm_vit")))


ROTARY = [
    (lambda a: without(a, "pos_embed"), "no positions: they may be rotary"),  # DINOv3
    (pooled, "a class token and attention pooling, as a Perception Encoder's"),  # its core
    (lambda a: without(clip(a), "norm."), "a norm before the blocks and none after them, as a Perception Encoder's"),
    (gated, "positions and biases of queries and values only, as EVA-02's"),
    (lambda a: gated(a, times=1), "biases of queries and values only, as EVA-02's"),  # its enormous
]


def test_rotary_positions_are_not_loaded_without(tmp_path):
    calls = []
    for i, (change, pattern) in enumerate(ROTARY):
        path = bare_file(change, tmp_path, f"{i}.safetensors")
        calls.append((partial(from_checkpoint, path, **HEADS), f"{pattern}.*{i}.safetensors"))
    assert not unexpected(calls)


def test_rotary_positions_do_not_fill_a_model(tmp_path):
    model = vit(**SMALL, block={"gelu": "exact"}, pooling="map", tokens={"class_token": True})
    before = weights(model)
    with pytest.raises(ValueError, match="Perception Encoder"):
        load_weights(model, bare_file(pooled, tmp_path))
    assert_same_weights(weights(model), before)


def test_config_json_refuses_what_no_rule_covers(tmp_path):
    bare_file(dict, tmp_path)

    def load(config):
        (tmp_path / "config.json").write_text(json.dumps(config))
        from_checkpoint(tmp_path, **HEADS)

    vit_b = {"architecture": "vit_base_patch16_224"}
    assert not unexpected(
        (partial(load, config), pattern)
        for config, pattern in [
            ({"architecture": "vit_dlittle_patch16_reg1_gap_256"}, "architecture='vit_dlittle_patch16_reg1_gap_256'"),
            ({"architecture": "vit_base_patch16_rope_512"}, "architecture='vit_base_patch16_rope_512'"),
            ({**vit_b, "model_args": {"use_rot_pos_emb": True}}, "use_rot_pos_emb=True"),
            ({**vit_b, "model_args": {"pos_embed": "rope"}}, "pos_embed='rope'"),
        ]
    )


def test_the_caller_has_the_last_word(tmp_path):
    path = bare_file(lambda a: without(a, "pos_embed"), tmp_path)
    assert from_checkpoint(path, position=None, image_size=24, **HEADS).get_layer("encoder").position is None


@pytest.mark.parametrize(
    "options",
    [
        dict(position=None),
        dict(pooling="map", tokens={"class_token": True}),
        dict(tokens={"pre_norm": True}, final_norm=None),
    ],
    ids=str,
)
def test_own_models_of_these_kinds_come_back(options, tmp_path):
    model = filled(**options, depth=1)
    for name in ("folder", "file.safetensors"):
        save_checkpoint(model, tmp_path / name, format="timm")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            again = from_checkpoint(tmp_path / name)
        assert_same_weights(weights(again), weights(model))


@pytest.mark.parametrize(
    "change, assumed",
    [
        (clip, "block={'gelu': 'exact'} (files of CLIP have 'exact' or 'quick')"),
        (lambda a: pooled(without(a, "cls_token")), "block={'gelu': 'exact'} (files of SigLIP have 'exact' or 'tanh')"),
        (lambda a: without(a, "cls_token"), "block={'gelu': 'exact'} (files of SigLIP have 'exact' or 'tanh')"),
    ],
    ids=["CLIP", "SigLIP", "SigLIP, average"],
)
def test_a_bare_file_s_assumptions_are_warned_of(change, assumed, tmp_path):
    def cut(arrays):
        arrays = change(arrays)
        return arrays if "cls_token" in arrays else arrays | {"pos_embed": arrays["pos_embed"][:, 1:]}

    path = bare_file(cut, tmp_path)
    with pytest.warns(UserWarning, match="does not show all that its model computes") as caught:
        from_checkpoint(path, **HEADS)
    [message] = [str(warning.message) for warning in caught]
    assert assumed in message and "config.json" in message and "file.safetensors" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        average = {"mean": 0.5, "std": 0.5} if "mean=" in message else {}  # SigLIP's, or I-JEPA's
        model = from_checkpoint(path, **HEADS, **average, block={"gelu": "quick"})  # nothing is left to assume
        load_weights(vit(**model_arguments(model)), path)


def model_arguments(model):
    from keras_vit.checkpoints.arguments import arguments_of

    gelu = "quick" if "norm_pre" in names(model) else "tanh"
    return merged({"variant": None}, arguments_of(model), {"block": {"gelu": gelu}})


def names(model):
    return [layer.name for layer in model.layers]


def test_heads_by_a_rule_of_thumb_are_warned_of(tmp_path):
    wide = filled(width=128, num_heads=2, mlp_dim=16, depth=1)
    save_checkpoint(wide, tmp_path / "folder", format="timm")
    (tmp_path / "folder" / "config.json").unlink()
    path = tmp_path / "folder" / "model.safetensors"
    import safetensors.numpy

    safetensors.numpy.save_file(safetensors.numpy.load_file(path), path)  # without this package's notes
    with pytest.warns(UserWarning, match="num_heads=2 .64 channels a head"):
        from_checkpoint(path, grid=(4, 6))


def test_deit3_s_names_are_rope_vit_s_too(tmp_path):
    def deit3(arrays):
        scales = {f"blocks.{i}.gamma_{j}": np.ones(24, "float32") for i in (0, 1) for j in (1, 2)}
        return arrays | scales | {"pos_embed": arrays["pos_embed"][:, 1:]}

    with pytest.warns(UserWarning, match="position='learned' .DeiT-III's; RoPE-ViT has the same names"):
        from_checkpoint(bare_file(deit3, tmp_path), **HEADS)


def test_bare_clip_has_clip_s_mean(tmp_path):
    model = from_checkpoint(bare_file(clip, tmp_path), block={"gelu": "quick"}, **HEADS)
    assert model.get_layer("rescale").mean == [0.48145466, 0.4578275, 0.40821073]
    assert model.get_layer("rescale").metadata["from"]["mean"] == "CLIP's rule"


def test_transformers_models_of_other_kinds_are_refused(tmp_path):
    write(tmp_path / "model.safetensors", arrays_of("hf_vit"))
    for config, pattern in (
        ({"model_type": "beit"}, "'beit'"),
        ({"model_type": "dpt", "is_hybrid": True}, "is_hybrid"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        with pytest.raises(ValueError, match=f"Received: .*{pattern}"):
            from_checkpoint(tmp_path, **HEADS)


def test_a_source_whose_patches_leave_a_margin_prepares_images_as_it_does(tmp_path):
    bare_file(dict, tmp_path)  # 3 x 3 patches of 8 pixels, on images of 28
    config = {"architecture": "vit_so400m_patch14_siglip_384", "pretrained_cfg": {"input_size": [3, 28, 28]}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    model = from_checkpoint(tmp_path, **HEADS)
    assert model.input_shape == (None, 24, 24, 3)
    assert model.get_layer("rescale").metadata["evaluation"]["full_size"] == [28, 28]
    other = from_checkpoint(tmp_path, image_size=32, **HEADS)
    assert "full_size" not in other.get_layer("rescale").metadata["evaluation"]


@pytest.mark.parametrize("part", [None, "text", "both"])
@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("whisper", ["model.decoder.embed_tokens.weight"]),
        ("vision-text-dual-encoder", ["text_model.embeddings.word_embeddings.weight", "vision_model.a.weight"]),
        ("blip-2", ["language_model.model.embed_tokens.weight", "vision_model.embeddings.class_embedding"]),
        ("florence2", ["vision_tower.convs.0.proj.weight"]),
    ],
)
def test_relatives_are_refused_by_their_kind(kind, names, part, tmp_path):
    write(tmp_path / "model.safetensors", {name: np.zeros((2, 2), "float32") for name in names})
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind, "architectures": ["Kind"]}))
    with pytest.raises(ValueError, match=kind):
        from_checkpoint(tmp_path, part=part)
