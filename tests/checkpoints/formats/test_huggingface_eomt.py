import json

import keras
import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy.special import erf, expit, softmax

from keras_vit import class_names, from_checkpoint
from keras_vit.checkpoints.remarks import Assumption
from keras_vit.models.map_heads import head_of
from keras_vit.models.segment_outputs import unpacked

WIDTH, HEADS, DEPTH, LAST, QUERIES, CLASSES, REGISTERS, PATCH, GRID = 8, 2, 3, 1, 4, 3, 2, 4, 3
CONFIG = {
    "model_type": "eomt", "hidden_size": WIDTH, "num_hidden_layers": DEPTH, "num_attention_heads": HEADS,
    "hidden_act": "gelu", "layer_norm_eps": 1e-6, "image_size": PATCH * GRID, "patch_size": PATCH,
    "num_blocks": LAST, "num_queries": QUERIES, "id2label": {"0": "cat", "1": "dog", "2": "sky"},
}  # fmt: skip
PROCESSOR = {
    "image_processor_type": "EomtImageProcessor", "do_pad": True, "do_split_image": False, "do_resize": True,
    "do_rescale": True, "do_normalize": True, "image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4],
    "resample": 2, "rescale_factor": 1 / 255, "size": {"shortest_edge": 12, "longest_edge": 12},
}  # fmt: skip
MLPS = {"plain": ("fc1", "fc2"), "gated": ("gate_proj", "up_proj", "down_proj"), "older": ("weights_in", "weights_out")}


def tensors(mlp="plain", seed=0):
    """Returns random weights under the names of transformers."""
    rng, hidden = np.random.default_rng(seed), 12
    shapes = {
        "embeddings.cls_token": (1, 1, WIDTH),
        "embeddings.register_tokens": (1, REGISTERS, WIDTH),
        "embeddings.patch_embeddings.projection.weight": (WIDTH, 3, PATCH, PATCH),
        "embeddings.patch_embeddings.projection.bias": (WIDTH,),
        "embeddings.position_embeddings.weight": (GRID**2, WIDTH),
        "query.weight": (QUERIES, WIDTH),
    }
    dense = {"class_predictor": (CLASSES + 1, WIDTH), **{f"mask_head.fc{i}": (WIDTH, WIDTH) for i in (1, 2, 3)}}
    norms = ["layernorm"]
    for i in range(DEPTH):
        block = f"layers.{i}"
        dense |= {f"{block}.attention.{each}_proj": (WIDTH, WIDTH) for each in ("q", "k", "v", "out")}
        norms += [f"{block}.norm1", f"{block}.norm2"]
        shapes |= {f"{block}.layer_scale{j}.lambda1": (WIDTH,) for j in (1, 2)}
        *first, last = MLPS[mlp]
        dense |= {f"{block}.mlp.{each}": (hidden * (1 + (mlp == "older")), WIDTH) for each in first}
        dense[f"{block}.mlp.{last}"] = (WIDTH, hidden)
    for i in range(2):
        step = f"upscale_block.block.{i}"
        shapes |= {f"{step}.conv1.weight": (WIDTH, WIDTH, 2, 2), f"{step}.conv1.bias": (WIDTH,)}
        shapes[f"{step}.conv2.weight"] = (WIDTH, 1, 3, 3)
        norms.append(f"{step}.layernorm2d")
    for name, shape in dense.items():
        shapes |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    shapes |= {f"{name}.{part}": (WIDTH,) for name in norms for part in ("weight", "bias")}
    found = {name: (0.5 * rng.normal(size=shape)).astype("float32") for name, shape in shapes.items()}
    zeros = {"attn_mask_probs": np.zeros(LAST, "float32"), "criterion.empty_weight": np.ones(CLASSES + 1, "float32")}
    return found | zeros


def saved(folder, config=None, processor=None, without=(), mlp="plain", **changes):
    arrays = {name: array for name, array in (tensors(mlp) | changes).items() if name not in without}
    save_file(arrays, folder / "model.safetensors")
    if config != {}:
        (folder / "config.json").write_text(json.dumps(CONFIG | (config or {})))
    if processor != {}:
        (folder / "preprocessor_config.json").write_text(json.dumps(PROCESSOR | (processor or {})))
    return folder


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


def reference(f, images, gated):
    """Returns logits of classes and masks of normalized images, in NumPy."""
    lin = lambda x, name: x @ f[f"{name}.weight"].T + f[f"{name}.bias"]  # noqa: E731

    def norm(x, name):
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
        return x * f[f"{name}.weight"] + f[f"{name}.bias"]

    def attention(x, name):
        q, k, v = (lin(x, f"{name}.{each}_proj").reshape(*x.shape[:2], HEADS, -1).swapaxes(1, 2) for each in "qkv")
        y = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -1) @ v
        return lin(y.swapaxes(1, 2).reshape(x.shape), f"{name}.out_proj")

    def mlp(x, name):
        if gated:
            gate = lin(x, f"{name}.gate_proj")
            return lin(gate * expit(gate) * lin(x, f"{name}.up_proj"), f"{name}.down_proj")
        return lin(gelu(lin(x, f"{name}.fc1")), f"{name}.fc2")

    count, projection = len(images), f["embeddings.patch_embeddings.projection.weight"]
    cut = images.reshape(count, GRID, PATCH, GRID, PATCH, 3)
    x = np.einsum("brpcqi,oipq->brco", cut, projection).reshape(count, -1, WIDTH)
    x = x + f["embeddings.patch_embeddings.projection.bias"] + f["embeddings.position_embeddings.weight"]
    repeated = lambda tokens: np.repeat(tokens, count, axis=0)  # noqa: E731
    x = np.concatenate([repeated(f["embeddings.cls_token"]), repeated(f["embeddings.register_tokens"]), x], axis=1)
    for i in range(DEPTH):
        x = np.concatenate([repeated(f["query.weight"][None]), x], axis=1) if i == DEPTH - LAST else x
        block = f"layers.{i}"
        x = x + attention(norm(x, f"{block}.norm1"), f"{block}.attention") * f[f"{block}.layer_scale1.lambda1"]
        x = x + mlp(norm(x, f"{block}.norm2"), f"{block}.mlp") * f[f"{block}.layer_scale2.lambda1"]
    x = norm(x, "layernorm")
    queries, y = x[:, :QUERIES], x[:, -(GRID**2) :].reshape(count, GRID, GRID, WIDTH)
    for i in range(2):
        step = f"upscale_block.block.{i}"
        rows = y.shape[1]
        y = np.einsum("brci,ioxy->brxcyo", y, f[f"{step}.conv1.weight"]).reshape(count, 2 * rows, 2 * rows, WIDTH)
        y = np.pad(gelu(y + f[f"{step}.conv1.bias"]), ((0, 0), (1, 1), (1, 1), (0, 0)))
        kernel = f[f"{step}.conv2.weight"][:, 0]
        y = sum(y[:, j : j + 2 * rows, k : k + 2 * rows] * kernel[:, j, k] for j in range(3) for k in range(3))
        y = norm(y, f"{step}.layernorm2d")
    masks = lin(gelu(lin(gelu(lin(queries, "mask_head.fc1")), "mask_head.fc2")), "mask_head.fc3")
    return lin(queries, "class_predictor"), np.einsum("bqd,brcd->brcq", masks, y)


@pytest.mark.parametrize("mlp", MLPS)
def test_it_computes_the_formula(mlp, tmp_path):
    config = None if mlp == "plain" else {"use_swiglu_ffn": True}
    older = tensors("gated")
    if mlp == "older":  # both parts in one matrix, the gate first
        for name in [name for name in older if "gate_proj" in name]:
            parts = [older[name], older.pop(name.replace("gate", "up"))]
            older[name.replace("gate_proj", "weights_in")] = np.concatenate(parts)
            del older[name]
        for name in [name for name in older if "down_proj" in name]:
            older[name.replace("down_proj", "weights_out")] = older.pop(name)
    model = from_checkpoint(saved(tmp_path, config, mlp=mlp, **(older if mlp == "older" else {})))
    images = np.random.default_rng(1).uniform(0, 255, (2, 12, 12, 3)).astype("float32")
    normalized = (images / 255 - np.array(PROCESSOR["image_mean"])) / np.array(PROCESSOR["image_std"])
    classes, masks = reference(tensors("plain" if mlp == "plain" else "gated"), normalized, mlp != "plain")
    found = unpacked(keras.ops.convert_to_numpy(model(images)), CLASSES, (12, 12))
    np.testing.assert_allclose(found[0], classes, atol=1e-4)
    np.testing.assert_allclose(found[1], masks, atol=1e-4 * np.ptp(masks))


def test_what_is_known_of_it(tmp_path):
    with pytest.warns(Assumption, match="`segment` keeps it too"):
        model = from_checkpoint(saved(tmp_path))
    assert class_names(model) == ("cat", "dog", "sky")
    assert head_of(model)["last"] == LAST and head_of(model)["queries"] == QUERIES
    assert model.get_layer("rescale").metadata["evaluation"]["photos"] == "padded"
    assert from_checkpoint(tmp_path, num_classes=0).output_shape == (None, WIDTH)
    assert from_checkpoint(tmp_path, image_size=24).output_shape == (None, QUERIES, CLASSES + 1 + 24 * 24)


def test_without_its_configuration(tmp_path):
    """The length of `attn_mask_probs` is the number of blocks."""
    saved(tmp_path, {}, {})
    model = from_checkpoint(tmp_path, num_heads=HEADS)
    assert head_of(model)["last"] == LAST and model.input_shape == (None, 12, 12, 3)
    with pytest.raises(ValueError, match="put the source's config.json next to the file"):
        from_checkpoint(saved(tmp_path, {}, {}, without=["attn_mask_probs"]), num_heads=HEADS)


SPLIT = {"do_pad": False, "do_split_image": True}


@pytest.mark.parametrize(
    "options, pattern",
    [
        (dict(config={"model_type": "eomt_dinov3"}), "on DINOv3 cannot be loaded. Received: 'eomt_dinov3'"),
        (dict(without=["embeddings.position_embeddings.weight"]), "`model_type` must be eomt.*Received: 'eomt'"),
        (dict(config={"num_blocks": 2}), "`num_blocks` must be the length of attn_mask_probs, 1. Received: 2"),
        (dict(attn_mask_probs=np.ones(1, "float32")), "Queries must see all patches.*Received: .1.0."),
        (dict(attn_mask_probs=np.zeros(3, "float32"), config={"num_blocks": 3}), "below 3. Received: 3"),
        (dict(config={"image_size": [12, 16]}), "`image_size` of EoMT must be one positive.*Received: .12, 16."),
        (dict(config={"image_size": 16}, processor={}), "no grid of 4 x 4"),
        (dict(config={"hidden_act": "swish"}), "`hidden_act` must be one of"),
        (dict(without=["mask_head.fc2.bias"]), "missing in the file: mask_head.fc2.bias"),
        (dict(without=["query.weight"]), "needs a tensor 'query.weight'"),
        (dict(new=np.ones(3, "float32")), "not in the model: new"),
        (dict(processor={"do_split_image": True}), "must split photos into windows.*Received: do_split_image=True"),
        (dict(processor=SPLIT), "size={'shortest_edge': 12, 'longest_edge': 12}"),
        (dict(processor={"size": {"shortest_edge": 16, "longest_edge": 16}}), "of 12 pixels"),
        (dict(processor={"do_resize": False}), "do_resize"),
    ],
)
def test_refused(options, pattern, tmp_path):
    with pytest.raises(ValueError, match=pattern):
        from_checkpoint(saved(tmp_path, **options))


def test_windows_are_stated(tmp_path):
    stated = {"size": {"shortest_edge": 12, "longest_edge": None}, "ignore_index": 255, "num_labels": 3}
    model = from_checkpoint(saved(tmp_path, {"image_size": [12, 12]}, SPLIT | stated))
    assert model.get_layer("rescale").metadata["evaluation"]["photos"] == "windows"
