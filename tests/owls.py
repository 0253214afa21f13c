"""A small OWL-ViT and OWLv2 with random weights: as a model, and as transformers' files."""

import functools
import json

import numpy as np
import safetensors.numpy
from scipy.special import erf, expit

import keras_vit
from keras_vit.models.open_detector import detection_heads, heads_for, open_detector
from tests.towers import LENGTH, WORDS

GRID, WIDTH, UNITS = (2, 2), 8, 6
SIDE = 16
KINDS = {False: "owlvit", True: "owlv2"}


def small(two=False, seed=0, dtype=None, words=None):
    """Returns a detector whose words are those of `tests.towers`; with `two` OWLv2's. `words` is a table in it."""
    image = keras_vit.vit(
        None, image_size=SIDE, patch_size=8, width=WIDTH, depth=1, num_heads=2, mlp_dim=8, pooling="none",
        num_classes=0, tokens={"class_token": True, "pre_norm": True},
        metadata={"evaluation": {"resize": "pad" if two else "direct"}}, dtype=dtype,
    )  # fmt: skip
    text = keras_vit.text_tower(
        vocabulary=len(WORDS), length=LENGTH, width=6, depth=1, num_heads=2, pooling="largest", projection=UNITS,
        metadata={"words": words} if words else None, dtype=dtype,
    )  # fmt: skip
    heads = detection_heads(**heads_for(image, text, width=WIDTH, units=UNITS, objectness=two, dtype=dtype))
    model = open_detector(image, text, heads)
    rng = np.random.default_rng(seed)
    model.set_weights([rng.normal(0, 0.5, weight.shape) for weight in model.get_weights()])
    return model


@functools.cache
def shared(two=False):
    """Returns the detector of `small` for all tests: none may change it."""
    return small(two)


def arrays_of(two=False, seed=0):
    """Returns random tensors under transformers' names."""
    rng = np.random.default_rng(seed)
    arrays = {}

    def add(name, *shape, bias=True):
        arrays[f"{name}.weight"] = rng.normal(0, 0.4, shape).astype("float32")
        if bias:
            arrays[f"{name}.bias"] = rng.normal(0, 0.4, shape[:1]).astype("float32")

    def blocks(name, width):
        for part in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"):
            add(f"{name}.encoder.layers.0.{part}", width, width)
        add(f"{name}.encoder.layers.0.mlp.fc1", 10, width)
        add(f"{name}.encoder.layers.0.mlp.fc2", width, 10)
        for part in ("layer_norm1", "layer_norm2"):
            add(f"{name}.encoder.layers.0.{part}", width)

    tower = f"{KINDS[two]}.vision_model"
    arrays[f"{tower}.embeddings.class_embedding"] = rng.normal(size=WIDTH).astype("float32")
    add(f"{tower}.embeddings.patch_embedding", WIDTH, 3, 8, 8, bias=False)
    add(f"{tower}.embeddings.position_embedding", 5, WIDTH, bias=False)
    add(f"{tower}.pre_layernorm", WIDTH)
    blocks(tower, WIDTH)
    add(f"{tower}.post_layernorm", WIDTH)
    text = f"{KINDS[two]}.text_model"
    add(f"{text}.embeddings.token_embedding", len(WORDS), 6, bias=False)
    add(f"{text}.embeddings.position_embedding", LENGTH, 6, bias=False)
    blocks(text, 6)
    add(f"{text}.final_layer_norm", 6)
    add(f"{KINDS[two]}.text_projection", UNITS, 6, bias=False)
    add(f"{KINDS[two]}.visual_projection", UNITS, WIDTH, bias=False)
    arrays[f"{KINDS[two]}.logit_scale"] = np.array(2.6, "float32")
    add("layer_norm", WIDTH)
    for head, units in {"box": 4, **({"objectness": 1} if two else {})}.items():
        for i, size in enumerate((WIDTH, WIDTH, units)):
            add(f"{head}_head.dense{i}", size, WIDTH)
    add("class_head.dense0", UNITS, WIDTH)
    add("class_head.logit_shift", 1, WIDTH)
    add("class_head.logit_scale", 1, WIDTH)
    return arrays


def folder_of(folder, two=False, **changes):
    """Writes transformers' files into a folder; `changes` are those of its processor. Returns the tensors."""
    arrays = arrays_of(two)
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    text = {"num_attention_heads": 2, "eos_token_id": 1}
    vision = {"num_attention_heads": 2, "image_size": SIDE}
    config = {"model_type": KINDS[two], "text_config": text, "vision_config": vision}
    (folder / "config.json").write_text(json.dumps(config))
    size = {"height": SIDE, "width": SIDE}
    processor = {"image_processor_type": f"{'Owlv2' if two else 'OwlViT'}ImageProcessor", "size": size, **changes}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return arrays


def reference(arrays, tokens, queries, ids):
    """Returns what the heads answer to tokens, `(images, 5, WIDTH)`, and queries, in NumPy: boxes, logits, objects."""

    def dense(x, name):
        return x @ arrays[f"{name}.weight"].T + arrays[f"{name}.bias"]

    def mlp(x, name):
        for i in range(2):
            x = dense(x, f"{name}.dense{i}")
            x = x * (1 + erf(x / np.sqrt(2))) / 2
        return dense(x, f"{name}.dense2")

    def unit(x):
        return x / (np.linalg.norm(x, axis=-1, keepdims=True) + 1e-6)

    x = tokens[:, 1:] * tokens[:, :1]
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    x = x * arrays["layer_norm.weight"] + arrays["layer_norm.bias"]
    corner = np.array([[0.5, 0.5], [1, 0.5], [0.5, 1], [1, 1]])  # the patches' lower right corners, x before y
    place = np.concatenate([corner, np.full((4, 2), 0.5)], -1)
    box = expit(mlp(x, "box_head") + np.log(place + 1e-4) - np.log1p(-place + 1e-4))
    center, half = box[..., 1::-1], box[..., 3:1:-1] / 2
    scale = dense(x, "class_head.logit_scale")
    cosines = unit(dense(x, "class_head.dense0")) @ unit(queries).T
    logits = (cosines + dense(x, "class_head.logit_shift")) * (np.where(scale > 0, scale, np.expm1(scale)) + 1)
    found = {
        "boxes": np.concatenate([center - half, center + half], -1),
        "logits": np.where(ids[:, 0] > 0, logits, np.finfo("float32").min),
    }
    if "objectness_head.dense0.weight" in arrays:
        found["objectness"] = mlp(x, "objectness_head")[..., 0]
    return found
