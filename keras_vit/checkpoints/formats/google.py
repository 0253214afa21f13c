"""Names in Google's `.npz` files: vit_jax (published and newer numbering) and big_vision."""

import re

from keras_vit.checkpoints.tables import (
    GROUP_NORM,
    HALF,
    HEADS_BIAS,
    HEADS_IN,
    HEADS_OUT,
    MAX_BLOCKS,
    OUR_UNIT,
    SAME,
    Format,
    Row,
    blocks,
    dense,
    joined,
    need,
    norm,
    stages,
)
from keras_vit.layers import ResNetStem

BLOCK = "Transformer/encoderblock_{i}"
ATTENTION = f"{BLOCK}/MultiHeadDotProductAttention_1"
POOL = "MAPHead_0/MultiHeadDotProductAttention_0"
UNIT = "block{i1}/unit{j1}"


def _scale_shift(ours, theirs, form=SAME):
    return norm(ours, theirs, "/scale", "/bias", form)


def _dense(ours, theirs):
    return dense(ours, theirs, "/kernel", "/bias")


ROWS = (
    Row("stem/root/kernel", "conv_root/kernel", SAME),
    *_scale_shift("stem/root_norm", "gn_root", GROUP_NORM),
    *(Row(f"{OUR_UNIT}/conv{k}/kernel", f"{UNIT}/conv{k}/kernel", SAME) for k in (1, 2, 3)),
    *(row for k in (1, 2, 3) for row in _scale_shift(f"{OUR_UNIT}/norm{k}", f"{UNIT}/gn{k}", GROUP_NORM)),
    Row(f"{OUR_UNIT}/shortcut/kernel", f"{UNIT}/conv_proj/kernel", SAME),
    *_scale_shift(f"{OUR_UNIT}/shortcut_norm", f"{UNIT}/gn_proj", GROUP_NORM),
    *_dense("encoder/projection", "embedding"),
    Row("encoder/class_token", "cls", SAME),
    Row("encoder/position_embedding", "Transformer/posembed_input/pos_embedding", SAME),
    *_scale_shift("block_{i}/norm1", f"{BLOCK}/LayerNorm_0"),
    Row("block_{i}/attention/qkv/kernel", tuple(f"{ATTENTION}/{p}/kernel" for p in ("query", "key", "value")),
        joined(HEADS_IN)),
    Row("block_{i}/attention/qkv/bias", tuple(f"{ATTENTION}/{p}/bias" for p in ("query", "key", "value")),
        joined(HEADS_BIAS)),
    Row("block_{i}/attention/proj/kernel", f"{ATTENTION}/out/kernel", HEADS_OUT),
    Row("block_{i}/attention/proj/bias", f"{ATTENTION}/out/bias", SAME),
    *_scale_shift("block_{i}/norm2", f"{BLOCK}/LayerNorm_2"),
    *_dense("block_{i}/mlp/fc1", f"{BLOCK}/MlpBlock_3/Dense_0"),
    *_dense("block_{i}/mlp/fc2", f"{BLOCK}/MlpBlock_3/Dense_1"),
    *_scale_shift("norm", "Transformer/encoder_norm"),
    Row("pool/probe", "MAPHead_0/probe", SAME),
    *(row for part in ("query", "key", "value") for row in _dense(f"pool/attention/{part}", f"{POOL}/{part}")),
    *_dense("pool/attention/attention_output", f"{POOL}/out"),
    *_scale_shift("pool/norm", "MAPHead_0/LayerNorm_0"),
    *_dense("pool/mlp/fc1", "MAPHead_0/MlpBlock_0/Dense_0"),
    *_dense("pool/mlp/fc2", "MAPHead_0/MlpBlock_0/Dense_1"),
    *_dense("pre_logits", "pre_logits"),
    *_dense("head", "head"),
)  # fmt: skip

PREFIXES = ("opt/target/", "params/img/", "params/")
STACKED = "Transformer/encoderblock/"
NEWER = {"MultiHeadDotProductAttention_0": "MultiHeadDotProductAttention_1", "LayerNorm_1": "LayerNorm_2",
         "MlpBlock_0": "MlpBlock_3"}  # fmt: skip
POSITIONS = ("pos_embedding", "Transformer/pos_embedding")


def detect(names):
    return any(re.search(r"(^|/)Transformer/encoderblock(_\d+)?/", name) for name in names)


def canonical(shapes):
    prefix = next((p for p in PREFIXES if any(name.startswith(f"{p}Transformer/") for name in shapes)), "")
    places = {}
    for name in shapes:
        short = name.removeprefix(prefix)
        if not name.startswith(prefix):
            continue  # of the optimizer or the text tower
        if short.startswith(STACKED):  # trained with a scan over blocks: they are the first axis
            for i in range(min(shapes[name][0] if shapes[name] else 0, MAX_BLOCKS)):
                places[short.replace("encoderblock", f"encoderblock_{i}")] = name, i
        else:
            places[short] = name
    newer = NEWER if any(re.search(r"encoderblock_\d+/MlpBlock_0/", name) for name in places) else {}
    published = {_published_name(name, newer): place for name, place in places.items()}
    if len(published) < len(places):
        raise ValueError("A weight is in the file twice, under a newer name and an older one.")
    return published


def _published_name(name, newer):
    return "Transformer/posembed_input/pos_embedding" if name in POSITIONS else _renumbered(name, newer)


def _renumbered(name, numbering):
    match = re.fullmatch(r"(Transformer/encoderblock_\d+/)(\w+)(/.*)", name)
    return f"{match[1]}{numbering.get(match[2], match[2])}{match[3]}" if match else name


def architecture(shapes, checkpoint):
    *patch_size, channels, width = need(shapes, "embedding/kernel", 4)
    units = stages(shapes, re.compile(r"block(\d+)/unit(\d+)/"))
    stem = None
    if "conv_root/kernel" in shapes:
        *_, channels, root = need(shapes, "conv_root/kernel", 4)
        stem = ResNetStem(units, width=root, name="stem")
    attention = ATTENTION.format(i=0)
    # Newer code adds the class token's position to the token itself.
    published = any("LayerNorm_2/" in name for name in checkpoint.shapes)
    arguments = {
        "stem": stem,
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"Transformer/encoderblock_(\d+)/")),
        "num_heads": need(shapes, f"{attention}/query/kernel", 3)[1],
        "mlp_dim": need(shapes, f"{BLOCK.format(i=0)}/MlpBlock_3/Dense_0/kernel", 2)[1],
        "tokens": {"class_token": "cls" in shapes, "class_position": True if published and "cls" in shapes else None},
        "norm": {"epsilon": 1e-6},
        "block": {"qkv_bias": f"{attention}/query/bias" in shapes, "gelu": "tanh"},
        "pooling": "map" if "MAPHead_0/probe" in shapes else "token" if "cls" in shapes else "gap",
        "position": "learned" if "Transformer/posembed_input/pos_embedding" in shapes else "sincos2d",
        "representation_size": need(shapes, "pre_logits/bias", 1)[0] if "pre_logits/bias" in shapes else None,
        "num_classes": need(shapes, "head/bias", 1)[0] if "head/bias" in shapes else 0,
        **HALF,
    }
    rule = "Google's rule for its files"
    evaluation = {"resize": "direct", "crop_pct": None, "interpolation": "bilinear", "antialias": False}
    return arguments, evaluation, dict.fromkeys(("block.gelu", "norm.epsilon", "mean", "evaluation"), rule)


def express(arguments, arrays):
    """Returns the arrays, under big_vision's newer names if positions do not cover the class token; and no JSON."""
    tokens = arguments["tokens"]
    if not tokens["class_token"] or tokens["class_position"] or arguments["position"] != "learned":
        return arrays, {}
    older = {published: newer for newer, published in NEWER.items()}
    arrays["pos_embedding"] = arrays.pop("Transformer/posembed_input/pos_embedding")
    return {_renumbered(name, older): array for name, array in arrays.items()}, {}


FORMAT = Format(
    name="google",
    rows=ROWS,
    detect=detect,
    canonical=canonical,
    architecture=architecture,
    express=express,
    head_names=r"head/.*|pre_logits/.*",
    resample="zoom",
)
