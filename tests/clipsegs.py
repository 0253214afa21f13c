"""A small CLIPSeg with random weights: as transformers' files, as a model, and its decoder in NumPy."""

import functools
import json
import pathlib
import tempfile

import numpy as np
import safetensors.numpy

import keras_vit
from tests.towers import LENGTH, WORDS

WIDTH, TEXT, UNITS, REDUCED, DEPTH = 8, 6, 5, 4, 3  # channels; blocks of the image tower
SIDE, PATCH = 24, 8  # of the processor; the table of positions is of 16 pixels
BLOCKS, HEADS = [0, 2], 2


def arrays_of(refined=False, seed=0):
    """Returns random tensors under transformers' names."""
    rng = np.random.default_rng(seed)
    arrays = {}

    def add(name, *shape, bias=True, outputs=None):
        arrays[f"{name}.weight"] = rng.normal(0, 0.4, shape).astype("float32")
        if bias:
            arrays[f"{name}.bias"] = rng.normal(0, 0.4, outputs or shape[0]).astype("float32")

    def block(name, width):
        for part in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"):
            add(f"{name}.{part}", width, width)
        add(f"{name}.mlp.fc1", 10, width)
        add(f"{name}.mlp.fc2", width, 10)
        for part in ("layer_norm1", "layer_norm2"):
            add(f"{name}.{part}", width)

    tower, text = "clip.vision_model", "clip.text_model"
    arrays[f"{tower}.embeddings.class_embedding"] = rng.normal(size=WIDTH).astype("float32")
    add(f"{tower}.embeddings.patch_embedding", WIDTH, 3, PATCH, PATCH, bias=False)
    add(f"{tower}.embeddings.position_embedding", 5, WIDTH, bias=False)
    add(f"{tower}.pre_layrnorm", WIDTH)
    for i in range(DEPTH):
        block(f"{tower}.encoder.layers.{i}", WIDTH)
    add(f"{tower}.post_layernorm", WIDTH)
    add(f"{text}.embeddings.token_embedding", len(WORDS), TEXT, bias=False)
    add(f"{text}.embeddings.position_embedding", LENGTH, TEXT, bias=False)
    block(f"{text}.encoder.layers.0", TEXT)
    add(f"{text}.final_layer_norm", TEXT)
    add("clip.text_projection", UNITS, TEXT, bias=False)
    add("clip.visual_projection", UNITS, WIDTH, bias=False)
    arrays["clip.logit_scale"] = np.array(2.6, "float32")
    add("decoder.film_mul", REDUCED, UNITS)
    add("decoder.film_add", REDUCED, UNITS)
    for i in range(len(BLOCKS)):
        add(f"decoder.reduces.{i}", REDUCED, WIDTH)
        block(f"decoder.layers.{i}", REDUCED)
    ups = "decoder.transposed_convolution"
    if refined:
        add(f"{ups}.0", REDUCED, REDUCED, 3, 3)
        add(f"{ups}.2", REDUCED, REDUCED // 2, PATCH // 4, PATCH // 4, outputs=REDUCED // 2)
        add(f"{ups}.4", REDUCED // 2, 1, PATCH // 4, PATCH // 4, outputs=1)
    else:
        add(ups, REDUCED, 1, PATCH, PATCH, outputs=1)
    return arrays


def folder_of(folder, refined=False, end=1, **changes):
    """Writes transformers' files into a folder; `changes` are those of `config.json`. Returns the tensors."""
    arrays, folder = arrays_of(refined), pathlib.Path(folder)
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    config = {
        "model_type": "clipseg",
        "text_config": {"num_attention_heads": 2, "eos_token_id": end},
        "vision_config": {"num_attention_heads": 2, "image_size": 16},
        "extract_layers": BLOCKS,
        "decoder_num_attention_heads": HEADS,
        "decoder_hidden_act": "quick_gelu",  # which is not what the decoder computes
        **changes,
    }
    (folder / "config.json").write_text(json.dumps(config))
    statistics = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    processor = {"feature_extractor_type": "ViTFeatureExtractor", "size": SIDE, "resample": 2, **statistics}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return arrays


@functools.cache
def shared(refined=False):
    """Returns the segmenter of `folder_of` for all tests: none may change it."""
    with tempfile.TemporaryDirectory() as folder:
        folder_of(folder, refined)
        model = keras_vit.from_checkpoint(folder)
    del model.get_layer("text").get_layer("words").metadata["tokens"]  # its words are those of `tests.towers`
    return model


def reference(arrays, tokens, conditions, at=0):
    """Returns the decoder's logits in NumPy.

    Args:
        arrays: Tensors of `arrays_of`.
        tokens: Those after each of `BLOCKS`, arrays `(images, 1 + patches, WIDTH)`, of a square grid.
        conditions: Array, `(conditions, UNITS)`.
        at: `conditional_layer`.
    """
    found = [[_mask(arrays, [x[i] for x in tokens], each, at) for each in conditions] for i in range(len(tokens[0]))]
    return np.stack([np.stack(each, -1) for each in found])  # (images, height, width, conditions)


def _mask(arrays, tokens, condition, at):
    def dense(x, name):
        return x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        return x * arrays[f"{name}.weight"] + arrays[f"{name}.bias"]

    def attention(x, name):
        q, k, v = (dense(x, f"{name}.{part}_proj").reshape(len(x), HEADS, -1) for part in "qkv")
        scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(q.shape[-1])
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return dense(np.einsum("hqk,khd->qhd", shares, v).reshape(len(x), -1), f"{name}.out_proj")

    x = 0
    for i, each in enumerate(tokens[::-1]):
        x, name = x + dense(each, f"decoder.reduces.{i}"), f"decoder.layers.{i}"
        if i == at:
            x = dense(condition, "decoder.film_mul") * x + dense(condition, "decoder.film_add")
        x = norm(x + attention(x, f"{name}.self_attn"), f"{name}.layer_norm1")
        hidden = np.maximum(dense(x, f"{name}.mlp.fc1"), 0)
        x = norm(x + dense(hidden, f"{name}.mlp.fc2"), f"{name}.layer_norm2")
    side = round((len(x) - 1) ** 0.5)
    x, ups = x[1:].reshape(side, side, -1), "decoder.transposed_convolution"
    if f"{ups}.weight" in arrays:
        return _up(x, arrays, ups)[..., 0]
    padded, kernel = np.pad(x, ((1, 1), (1, 1), (0, 0))), arrays[f"{ups}.0.weight"]
    parts = (padded[i : i + side, j : j + side] @ kernel[:, :, i, j].T for i in range(3) for j in range(3))
    x = np.maximum(sum(parts) + arrays[f"{ups}.0.bias"], 0)
    return _up(np.maximum(_up(x, arrays, f"{ups}.2"), 0), arrays, f"{ups}.4")[..., 0]


def _up(x, arrays, name):
    """Returns a map after a transposed convolution whose stride is its kernel's side."""
    x = np.einsum("rci,ioyx->rycxo", x, arrays[f"{name}.weight"])
    rows, high, columns, wide, channels = x.shape
    return x.reshape(rows * high, columns * wide, channels) + arrays[f"{name}.bias"]
