"""OpenCLIP's names: without `text.` as CLIP's own, and with it beside a tower of timm's, made from SigLIP's file."""

import json
import re
import shutil

import numpy as np
import pytest

from keras_vit import from_checkpoint
from keras_vit.checkpoints.formats.openai_text import FORMAT
from keras_vit.checkpoints.remarks import Assumption
from tests.checkpoints.helpers import unexpected, write
from tests.checkpoints.towers import TOWERS, answers, arrays_in, io_in

pytestmark = pytest.mark.backend

BLOCK = r"encoder\.layers\.(\d+)\."
NAMES = [  # of transformers' SigLIP
    (r"^text_model\.embeddings\.token_embedding\.", "text.token_embedding."),
    (r"^text_model\.embeddings\.position_embedding\.weight$", "text.positional_embedding"),
    (r"^text_model\.final_layer_norm\.", "text.ln_final."),
    (r"^text_model\.head\.", "text.text_projection."),
    (rf"^text_model\.{BLOCK}layer_norm", r"text.transformer.resblocks.\1.ln_"),
    (rf"^text_model\.{BLOCK}self_attn\.in_proj\.", r"text.transformer.resblocks.\1.attn.in_proj_"),
    (rf"^text_model\.{BLOCK}self_attn\.", r"text.transformer.resblocks.\1.attn."),
    (rf"^text_model\.{BLOCK}mlp\.fc1\.", r"text.transformer.resblocks.\1.mlp.c_fc."),
    (rf"^text_model\.{BLOCK}mlp\.fc2\.", r"text.transformer.resblocks.\1.mlp.c_proj."),
    (r"^vision_model\.embeddings\.patch_embedding\.", "visual.trunk.patch_embed.proj."),
    (r"^vision_model\.embeddings\.position_embedding\.weight$", "visual.trunk.pos_embed"),
    (r"^vision_model\.post_layernorm\.", "visual.trunk.norm."),
    (rf"^vision_model\.{BLOCK}layer_norm", r"visual.trunk.blocks.\1.norm"),
    (rf"^vision_model\.{BLOCK}self_attn\.in_proj\.", r"visual.trunk.blocks.\1.attn.qkv."),
    (rf"^vision_model\.{BLOCK}self_attn\.out_proj\.", r"visual.trunk.blocks.\1.attn.proj."),
    (rf"^vision_model\.{BLOCK}mlp\.", r"visual.trunk.blocks.\1.mlp."),
    (r"^vision_model\.head\.probe$", "visual.trunk.attn_pool.latent"),
    (r"^vision_model\.head\.attention\.out_proj\.", "visual.trunk.attn_pool.proj."),
    (r"^vision_model\.head\.layernorm\.", "visual.trunk.attn_pool.norm."),
    (r"^vision_model\.head\.mlp\.", "visual.trunk.attn_pool.mlp."),
]
TOWER = {"timm_model_name": "vit_so400m_patch16_siglip_256", "timm_pool": "map", "timm_proj": "none", "image_size": 32}
TEXT = {"heads": 4, "no_causal_mask": True, "proj_bias": True, "pool_type": "last", "norm_kwargs": {"eps": 1e-6}}
TANH = {"act_kwargs": {"approximate": "tanh"}}


def open_clip():
    """Returns the tensors of the golden SigLIP as OpenCLIP calls them."""
    arrays = arrays_in("siglip")
    for name in [name for name in arrays if ".q_proj." in name]:
        parts = [arrays.pop(name.replace(".q_proj.", f".{part}_proj.")) for part in "qkv"]
        arrays[name.replace(".q_proj.", ".in_proj.")] = np.concatenate(parts)
    for part in ("weight", "bias"):
        query, *others = np.split(arrays.pop(f"vision_model.head.attention.in_proj_{part}"), 3)
        arrays |= {
            f"visual.trunk.attn_pool.q.{part}": query,
            f"visual.trunk.attn_pool.kv.{part}": np.concatenate(others),
        }
    for pattern, name in NAMES:
        arrays = {re.sub(pattern, name, key): array for key, array in arrays.items()}
    arrays["visual.trunk.pos_embed"] = arrays["visual.trunk.pos_embed"][None]
    return arrays


def written(folder, arrays, text=None, **tower):
    """Writes tensors and, with `text`, OpenCLIP's configuration."""
    if text is not None:
        config = {"model_cfg": {"vision_cfg": TOWER | tower, "text_cfg": text}}
        (folder / "open_clip_config.json").write_text(json.dumps(config))
    return write(folder / "open_clip_model.safetensors", arrays)


def test_a_text_tower_beside_timm_s(tmp_path):
    io, arrays = io_in("siglip"), open_clip()
    path = written(tmp_path, arrays, TEXT | TANH)
    found = answers(from_checkpoint(path, part="both", num_heads=3), io)
    for name in ("text_tokens_output", "text_embedding", "image_embedding", "logits_per_image"):
        np.testing.assert_allclose(found[name], io[name], atol=1e-4, err_msg=name)
    matrix = np.random.default_rng(0).normal(size=(36, 36)).astype("float32")
    path = written(tmp_path, arrays | {"visual.head.proj.weight": matrix}, TEXT | TANH, timm_proj="linear")
    found = answers(from_checkpoint(path, part="both", num_heads=3), io)
    np.testing.assert_allclose(found["image_embedding"], io["image_embedding"] @ matrix.T, atol=1e-3)
    mlp = {f"visual.head.mlp.fc{i}.weight": matrix for i in (1, 2)}
    path = written(tmp_path, arrays | mlp, TEXT | TANH, timm_proj="mlp")
    calls = [(lambda: from_checkpoint(path, part="both", num_heads=3), "has a head that is not one linear layer")]
    assert not unexpected(calls)


def test_numbers_of_openai_s_archives_are_dropped(tmp_path):
    numbers = {name: np.array(3) for name in ("input_resolution", "context_length", "vocab_size")}
    shutil.copy(TOWERS / "clip_openclip" / "open_clip_config.json", tmp_path)
    path, io = write(tmp_path / "x.safetensors", arrays_in("clip_openclip") | numbers), io_in("clip_openclip")
    found = answers(from_checkpoint(path, part="both"), io)
    np.testing.assert_allclose(found["logits_per_image"], io["logits_per_image"], atol=1e-4)


def test_what_a_bare_file_assumes(tmp_path):
    path = written(tmp_path, open_clip())
    with pytest.warns(Assumption, match="gelu='exact' .files of SigLIP have 'exact' or 'tanh'."):
        model = from_checkpoint(path, part="text", num_heads=4)
    assert {layer.name: layer for layer in model.layers}["block_0"].epsilon == 1e-6
    found = from_checkpoint(path, part="text", num_heads=4, gelu="tanh")(io_in("siglip")["tokens"])
    np.testing.assert_allclose(found, io_in("siglip")["text_embedding"], atol=1e-4)
    own = write(tmp_path / "own.safetensors", arrays_in("clip_openclip"))
    calls = [
        (lambda: from_checkpoint(own, part="text"), "No tensor shows the heads, and no text tower of width 24 is"),
        (
            lambda: from_checkpoint(own, part="text", num_heads=3),
            "No tensor shows how words attend, and CLIP has 49408",
        ),
    ]
    assert not unexpected(calls)
    stated = {"num_heads": 3, "causal": True, "pooling": "largest"}
    found = from_checkpoint(own, part="text", **stated)(io_in("clip_openclip")["tokens"])
    np.testing.assert_allclose(found, io_in("clip_openclip")["text_embedding"], atol=1e-4)


def read(text, **model):
    arrays = arrays_in("clip_openclip")
    shapes = {name: arrays[place].shape for name, place in FORMAT.names(arrays).items()}
    checkpoint = type("Checkpoint", (), {"config": {"model_cfg": {"text_cfg": text, **model}}})
    return FORMAT.architecture(shapes, checkpoint)


def test_the_configuration_says_the_rest():
    own = json.loads((TOWERS / "clip_openclip" / "open_clip_config.json").read_text())["model_cfg"]["text_cfg"]
    arguments, about, origins = read(own)
    assert arguments == dict(
        vocabulary=574, length=20, width=24, depth=2, num_heads=3, mlp_dim=96, causal=True, pooling="largest",
        projection=24, projection_bias=False, gelu="exact", epsilon=1e-5,
    )  # fmt: skip
    assert about == {"tokens": "clip"} and origins["gelu"] == "open_clip_config.json"
    assert read(own, quick_gelu=True)[0]["gelu"] == "quick"
    assert read({})[0]["num_heads"] == 8  # OpenCLIP's default
    clipa = read(own | {"no_causal_mask": True, "pool_type": "last", "hf_tokenizer_name": "bert-base-uncased"})
    assert (clipa[0]["causal"], clipa[0]["pooling"], clipa[1]) == (False, "last", {})
    assert read(own | {"pool_type": "eos", "eos_id": 5})[0].items() >= {"pooling": "end", "end": 5}.items()


@pytest.mark.parametrize(
    "option",
    [{"embed_cls": True}, {"hf_model_name": "roberta-base"}, {"pool_type": "none"}, {"act_kwargs": {"alpha": 1}}],
)
def test_other_text_towers_are_refused(option):
    [(name, value)] = option.items()
    assert not unexpected(
        [(lambda: read(option), re.escape(f"OpenCLIP's text towers with {name}={value!r} cannot be"))]
    )


def test_models_that_are_not_two_plain_towers_are_refused(tmp_path):
    arrays = arrays_in("clip_openclip")
    resnet = {name: array for name, array in arrays.items() if not name.startswith("visual.")}
    resnet |= {"visual.conv1.weight": np.ones((8, 3, 3, 3), "float32"), "visual.bn1.weight": np.ones(8, "float32")}
    text = {"heads": 3}
    path = written(tmp_path, resnet, text)
    assert from_checkpoint(path, part="text").output_shape == (None, 24)  # that of a ResNet is read
    roberta = {"text.transformer.embeddings.word_embeddings.weight": np.ones((4, 4), "float32")}
    hub = write(tmp_path / "hub.safetensors", roberta)
    assert not unexpected(
        [
            (lambda: from_checkpoint(path, part="both"), "must be a Vision Transformer of"),
            (lambda: from_checkpoint(hub, part="text"), "must have a text tower of"),
        ]
    )
