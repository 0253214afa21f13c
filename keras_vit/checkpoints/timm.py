"""Names in timm's state dicts: ViT, DeiT, DeiT-III, registers, attention pooling, hybrids."""

import re

import numpy as np

from keras_vit.checkpoints import timm_config
from keras_vit.checkpoints.tables import (
    CLIP,
    CONV,
    FLAT_TO_HEADS,
    HALF,
    IMAGENET,
    LINEAR,
    LINEAR_HEADS_IN,
    LINEAR_HEADS_OUT,
    OUR_UNIT,
    SAME,
    Assumed,
    Form,
    Format,
    Missing,
    Row,
    blocks,
    joined,
    need,
    parted,
    published_heads,
    renamed,
    stages,
    torch_dense,
    torch_norm,
)
from keras_vit.layers import ResNetStem
from keras_vit.layers.rotary import ROTARY

BLOCK = "blocks.{i}"
UNIT = "patch_embed.backbone.stages.{i}.blocks.{j}"
QV_BIAS = ("q_bias", "qkv.masked_bias")
WITHOUT_KEY = Form(
    lambda arrays, heads: [np.concatenate(np.split(arrays[0], 3)[::2])],
    lambda ours, heads: [np.concatenate(np.insert(np.split(ours[0], 2), 1, 0, axis=0))],
)
KEY_VALUE = ("pool/attention/key", "pool/attention/value")


ROWS = (
    Row("stem/root/kernel", "{root}.conv.weight", CONV),
    *torch_norm("stem/root_norm", "{root}.norm"),
    *(Row(f"{OUR_UNIT}/conv{k}/kernel", f"{UNIT}.conv{k}.weight", CONV) for k in (1, 2, 3)),
    *(row for k in (1, 2, 3) for row in torch_norm(f"{OUR_UNIT}/norm{k}", f"{UNIT}.norm{k}")),
    Row(f"{OUR_UNIT}/shortcut/kernel", f"{UNIT}.downsample.conv.weight", CONV),
    *torch_norm(f"{OUR_UNIT}/shortcut_norm", f"{UNIT}.downsample.norm"),
    Row("encoder/projection/kernel", "patch_embed.proj.weight", CONV),
    Row("encoder/projection/bias", "patch_embed.proj.bias", SAME),
    Row("encoder/class_token", "cls_token", SAME),
    Row("encoder/distillation_token", "dist_token", SAME),
    Row("encoder/register_tokens", "reg_token", SAME),
    Row("encoder/position_embedding", "pos_embed", SAME),
    *torch_norm("norm_pre", "norm_pre"),
    *torch_norm("block_{i}/norm1", f"{BLOCK}.norm1"),
    *torch_dense("block_{i}/attention/qkv", f"{BLOCK}.attn.qkv"),
    Row("block_{i}/attention/qv_bias", (f"{BLOCK}.attn.q_bias", f"{BLOCK}.attn.v_bias"), joined(SAME, 2)),  # DINOv3
    Row("block_{i}/attention/qv_bias", f"{BLOCK}.attn.qkv.masked_bias", WITHOUT_KEY),  # of its authors
    *torch_norm("block_{i}/attention/q_norm", f"{BLOCK}.attn.q_norm"),
    *torch_norm("block_{i}/attention/k_norm", f"{BLOCK}.attn.k_norm"),
    *torch_dense("block_{i}/attention/proj", f"{BLOCK}.attn.proj"),
    Row("block_{i}/scale1/gamma", f"{BLOCK}.ls1.gamma", SAME),
    *torch_norm("block_{i}/norm2", f"{BLOCK}.norm2"),
    *torch_dense("block_{i}/mlp/fc1", f"{BLOCK}.mlp.fc1"),
    Row("block_{i}/mlp/fc1/kernel", (f"{BLOCK}.mlp.fc1_g.weight", f"{BLOCK}.mlp.fc1_x.weight"), joined(LINEAR, 2)),
    Row("block_{i}/mlp/fc1/bias", (f"{BLOCK}.mlp.fc1_g.bias", f"{BLOCK}.mlp.fc1_x.bias"), joined(SAME, 2)),
    *torch_dense("block_{i}/mlp/fc2", f"{BLOCK}.mlp.fc2"),
    Row("block_{i}/scale2/gamma", f"{BLOCK}.ls2.gamma", SAME),
    *torch_norm("norm", "{norm}"),
    Row("pool/probe", "attn_pool.latent", SAME),
    Row("pool/attention/query/kernel", "attn_pool.q.weight", LINEAR_HEADS_IN),
    Row("pool/attention/query/bias", "attn_pool.q.bias", FLAT_TO_HEADS),
    Row(tuple(f"{part}/kernel" for part in KEY_VALUE), "attn_pool.kv.weight", parted(LINEAR_HEADS_IN)),
    Row(tuple(f"{part}/bias" for part in KEY_VALUE), "attn_pool.kv.bias", parted(FLAT_TO_HEADS)),
    Row("pool/attention/attention_output/kernel", "attn_pool.proj.weight", LINEAR_HEADS_OUT),
    Row("pool/attention/attention_output/bias", "attn_pool.proj.bias", SAME),
    *torch_norm("pool/norm", "attn_pool.norm"),
    *torch_dense("pool/mlp/fc1", "attn_pool.mlp.fc1"),
    *torch_dense("pool/mlp/fc2", "attn_pool.mlp.fc2"),
    *torch_dense("head", "head"),
    *torch_dense("head_distilled", "head_dist"),
)

# Names in the authors' own files that differ from timm's: DeiT-III, DINOv2, DINOv3.
ALIASES = (
    (r"\.gamma_([12])$", r".ls\1.gamma"),
    (r"^(register|storage)_tokens$", "reg_token"),
    (r"\.mlp\.w1\.", ".mlp.fc1_g."),
    (r"\.mlp\.w2\.", ".mlp.fc1_x."),
    (r"\.mlp\.w12\.", ".mlp.fc1."),
    (r"\.mlp\.w3\.", ".mlp.fc2."),
)

PERIODS = "rope_embed.periods"  # in the files of DINOv3's authors
EVA01 = 1408  # width of EVA-01's giant
# What a file does not show, such as rotary positions. If there is no config.json, these signs tell.
ROTARY_SIGNS = {
    "a class token and attention pooling, as a Perception Encoder's": lambda shapes: (
        {"cls_token", "attn_pool.latent"} <= set(shapes)
    ),
    "a norm before the blocks and none after them, as a Perception Encoder's": lambda shapes: (
        "norm_pre.weight" in shapes and not {"norm.weight", "fc_norm.weight"} & set(shapes)
    ),
    "positions and biases of queries and values only, as EVA-02's": lambda shapes: (
        {"pos_embed", "blocks.0.attn.q_bias"} <= set(shapes) and (_gated(shapes) or shapes["pos_embed"][-1] != EVA01)
    ),
}


def detect(names):
    return "patch_embed.proj.weight" in names


def canonical(shapes):
    names = renamed(shapes, ALIASES)
    masked = {name for name in names if f"{name}_mask" in names}  # DINOv3's biases, whose part of the key is masked
    return {name.replace(".bias", ".masked_bias") if name in masked else name: names[name] for name in names}


def architecture(shapes, checkpoint):
    width, channels, *patch_size = need(shapes, "patch_embed.proj.weight", 4)
    block, gated = BLOCK.format(i=0), _gated(shapes)
    stated, evaluation, origins = timm_config.read(checkpoint.config, gated)
    bare = not (checkpoint.config.get("architecture") or checkpoint.notes)
    signs = [sign for sign, shown in ROTARY_SIGNS.items() if bare and shown(shapes)]
    if signs:
        raise ValueError(
            f"A timm file with {signs[0]}, cannot be loaded without timm's config.json next to it: the file does not "
            f"show all that its model computes. Received: {str(checkpoint.path)!r}"
        )
    tokens = {name: need(shapes, name, 3)[1] for name in ("cls_token", "dist_token", "reg_token") if name in shapes}
    norm_after, pre_norm = "fc_norm.weight" in shapes, "norm_pre.weight" in shapes
    heads, heads_from = published_heads(width)
    if f"{block}.attn.q_norm.weight" in shapes:
        heads, heads_from = width // need(shapes, f"{block}.attn.q_norm.weight", 1)[0], "the q-k norm's width"
    if PERIODS in shapes:
        heads_from = PERIODS
    elif heads and not bare:
        heads_from = str(heads_from)  # the rule holds for every architecture that a config.json may name
    stem, roots = None, ("patch_embed.backbone.stem", "patch_embed.backbone")
    root = next((name for name in roots if f"{name}.conv.weight" in shapes), None)
    if root:
        first, channels, *_ = need(shapes, f"{root}.conv.weight", 4)
        units = stages(shapes, re.compile(r"patch_embed\.backbone\.stages\.(\d+)\.blocks\.(\d+)\."))
        stem = ResNetStem(units, width=first, epsilon=1e-5, standardize="timm", name="stem")
    elif any(name.startswith("patch_embed.backbone.") for name in shapes):
        raise ValueError("Only timm's hybrids with group norm can be loaded: vit_*_r26_*, vit_*_r50_*, vit_*_r_*.")
    scaled = f"{block}.ls1.gamma" in shapes
    imagenet = {"dist_token", "mask_token"} & set(shapes) or (scaled and "reg_token" not in tokens)  # DeiT, DINOv2
    arguments = {
        "stem": stem,
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"blocks\.(\d+)\.")),
        "num_heads": heads,
        "mlp_dim": need(shapes, f"{block}.mlp.fc2.weight", 2)[1],
        "swiglu": gated,
        "qkv_bias": any(f"{block}.attn.{name}" in shapes for name in ("qkv.bias", *QV_BIAS)),
        "key_bias": not any(f"{block}.attn.{name}" in shapes for name in QV_BIAS),
        "qk_norm": f"{block}.attn.q_norm.weight" in shapes,
        "layer_scale": 1e-6 if scaled else None,
        "class_token": "cls_token" in tokens,
        "distilled": "dist_token" in tokens,
        "registers": tokens.get("reg_token", 0),
        "pooling": "gap" if norm_after or "cls_token" not in tokens else "token",
        "pre_norm": pre_norm,
        "final_norm": "after" if norm_after else "before" if "norm.weight" in shapes else None,
        "position": "learned" if "pos_embed" in shapes else None,
        "num_classes": need(shapes, "head.bias", 1)[0] if "head.bias" in shapes else 0,
        "gelu": "exact",
        "epsilon": 1e-5 if pre_norm else 1e-6,
        **(CLIP if pre_norm else IMAGENET if imagenet else HALF),
        **(_of_dinov3_authors(shapes, width, checkpoint) if PERIODS in shapes else {}),
        **stated,
    }
    if "attn_pool.latent" in shapes:
        arguments["pooling"] = "map"
        mlp_dim, *_ = shapes.get("attn_pool.mlp.fc1.weight", (arguments["mlp_dim"],))
        own = {} if mlp_dim == arguments["mlp_dim"] else {"mlp_dim": mlp_dim}
        own |= {"num_heads": 8, "over_prefix": True} if "_pe_" in checkpoint.config.get("architecture", "") else {}
        arguments["attention_pool"] = own or None
    rules = {
        "num_heads": heads_from,
        "gelu": "timm's default",
        "epsilon": "timm's rule",
        "mean": "CLIP's rule" if pre_norm else "DeiT's rule" if imagenet else "timm's rule for ViT",
        "evaluation": "timm's default",
    }
    return arguments, evaluation, rules | (_open_questions(arguments, checkpoint) if bare else {}) | origins


def _of_dinov3_authors(shapes, width, checkpoint):
    """Returns the arguments that the periods of rotary positions show: there is one for four channels of a head."""
    periods = checkpoint.array(PERIODS)
    count = need(shapes, PERIODS, 1)[0]
    base = float(periods[-1]) ** (count / max(count - 1, 1))  # the last is base ** (1 - 1 / count), in bfloat16
    if abs(base / ROTARY["dinov3"]["base"] - 1) > 0.02:
        raise ValueError(f"DINOv3 must have rotary positions of base 100. Received: base {base:.1f}")
    return {**timm_config.DINOV3, "num_heads": width // (4 * count)}


def _gated(shapes):
    """Returns whether the first layer of an MLP also computes a gate."""
    hidden = need(shapes, "blocks.0.mlp.fc2.weight", 2)[1]
    return "blocks.0.mlp.fc1_g.weight" in shapes or need(shapes, "blocks.0.mlp.fc1.weight", 2)[0] == 2 * hidden


def _open_questions(arguments, checkpoint):
    """Returns the arguments that a file without config.json does not show, with the reasons."""
    reasons, deit3 = {}, any(re.search(r"\.gamma_[12]$", name) for name in checkpoint.shapes)
    if arguments["pre_norm"]:
        reasons["gelu"] = Assumed("files of CLIP have 'exact' or 'quick'")
    elif arguments["pooling"] == "map" or (arguments["final_norm"] == "before" and not arguments["class_token"]):
        reasons["gelu"] = Assumed("files of SigLIP have 'exact' or 'tanh'")
    if arguments["position"] is None and not arguments.get("rotary"):
        reasons["position"] = Missing(
            "The file has no positions: they may be rotary or relative (DINOv3, RoPE-ViT, BEiT). Put timm's "
            "config.json next to it, or pass position=None for a model without positions."
        )
    elif deit3 and arguments["class_token"]:
        reasons["position"] = Assumed("DeiT-III's; RoPE-ViT has the same names, and rotary='rope-vit'")
    return reasons


def placeholders(arguments):
    stem = arguments["stem"]
    return {
        "norm": "fc_norm" if arguments["final_norm"] == "after" else "norm",
        "root": "patch_embed.backbone" + (".stem" if getattr(stem, "stages", ()) else ""),
    }


FORMAT = Format(
    name="timm",
    rows=ROWS,
    detect=detect,
    canonical=canonical,
    architecture=architecture,
    express=timm_config.express,
    placeholders=placeholders,
    ignored=r"mask_token|decoder_.*|rope_embed\.periods|local_cls_norm\..*|.*\.bias_mask",  # of training; DINOv3's
    head_names=r"head\..*|head_dist\..*|pre_logits\..*",
    resample="bicubic-antialias",
    resample_patches="bicubic-antialias",
)
