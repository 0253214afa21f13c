"""Reads the architecture of a file with timm's names: off its tensors, and off what its `config.json` adds."""

import re

from keras_vit.checkpoints.formats import timm_config
from keras_vit.checkpoints.tables import (
    CLIP,
    HALF,
    IMAGENET,
    Assumed,
    Missing,
    blocks,
    classes_of,
    need,
    published_heads,
    square_of,
    stages,
)
from keras_vit.layers import ResNetStem
from keras_vit.layers.attention.rotary import ROTARY
from keras_vit.models.options import merged

BLOCK = "blocks.{i}"
IN = "in_proj"  # of parallel blocks: the MLP's first layer, queries, keys and values in one
QV_BIAS = ("q_bias", "qkv.masked_bias", "q_proj.bias")
MIXED = "rope.freqs"  # learned frequencies, of all blocks in one tensor
DISTANCES = "attn.relative_position_bias_table"
PERIODS = "rope_embed.periods"  # in the files of DINOv3's authors
FREQUENCIES = {"rope.freqs_cos", "blocks.0.attn.rope.freqs_cos"}  # in those of EVA-02's
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
        "pos_embed" in shapes
        and {f"blocks.0.attn.{name}" for name in ("q_bias", "q_proj.bias")} & set(shapes)
        and not FREQUENCIES & set(shapes)
        and (_gated(shapes) or shapes["pos_embed"][-1] != EVA01)
    ),
}


def architecture(shapes, checkpoint):
    width, channels, *patch_size = need(shapes, "patch_embed.proj.weight", 4)
    rms_norm = any(name.endswith(".rms") for name in shapes)
    shapes = {re.sub(r"\.rms$", ".weight", name): shape for name, shape in shapes.items()}
    block = BLOCK.format(i=0)
    others = {f"{block}.attns.0.attn.qkv.weight", f"{block}.out_proj.weight"} & set(shapes)
    if others:
        raise ValueError(
            "timm's blocks with several attentions at once, with differential attention or with one last layer for "
            f"attention and MLP cannot be loaded. Received: {min(others)!r}"
        )
    parallel = f"{block}.{IN}.weight" in shapes
    if parallel:
        hidden = need(shapes, f"{block}.{IN}.weight", 2)[0] - 3 * width
        shapes |= {f"{block}.mlp.fc1.weight": (hidden, width)}
        shapes |= {f"{block}.attn.qkv.bias": (3 * width,)} if f"{block}.{IN}.bias" in shapes else {}
    gated = _gated(shapes)
    config_arguments, evaluation, origins = timm_config.read(checkpoint.config, gated)
    bare = not (checkpoint.config.get("architecture") or checkpoint.notes)
    signs = [sign for sign, sign_of in ROTARY_SIGNS.items() if bare and sign_of(shapes)]
    if signs:
        raise ValueError(
            f"A timm file with {signs[0]}, cannot be loaded without timm's config.json next to it: the file does not "
            f"show all that its model computes. Received: {str(checkpoint.path)!r}"
        )
    tokens = {name: need(shapes, name, 3)[1] for name in ("cls_token", "dist_token", "reg_token") if name in shapes}
    norm_after, pre_norm = "fc_norm.weight" in shapes, "norm_pre.weight" in shapes
    patch_norm = "patch_embed.norm.weight" in shapes
    heads, heads_from = published_heads(width)
    if f"{block}.attn.q_norm.weight" in shapes:
        heads, heads_from = width // need(shapes, f"{block}.attn.q_norm.weight", 1)[0], "the q-k norm's width"
    of_aimv2 = rms_norm and not parallel
    if of_aimv2 and (not patch_norm or not gated or "cls_token" in tokens or f"{block}.attn.proj.bias" in shapes):
        raise ValueError("Only AIMv2's norms may have no biases: others' may be layer norms or RMS norms.")
    if of_aimv2 and width % 128 == 0:
        heads, heads_from = width // 128, "AIMv2's rule"
    if PERIODS in shapes:
        heads_from = PERIODS
    elif heads and not bare:
        heads_from = str(heads_from)  # the rule holds for every architecture that a config.json may name
    relative = f"{block}.{DISTANCES}" in shapes
    if relative:
        (distances, heads), heads_from = need(shapes, f"{block}.{DISTANCES}", 2), "the relative positions"
        grid = square_of(distances - 3 * ("cls_token" in tokens))
        config_arguments = (
            {"image_size": tuple(side * step for side, step in zip(grid, patch_size)), **config_arguments}
            if grid
            else config_arguments
        )
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
    clip = (pre_norm or rms_norm) and not parallel  # and AIMv2
    imagenet, beit3 = imagenet and not relative, _sub_norm(shapes) == "both" and not gated
    arguments = {
        "stem": stem,
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"blocks\.(\d+)\.")),
        "num_heads": heads,
        "mlp_dim": need(shapes, f"{block}.mlp.fc2.weight", 2)[1],
        "block": {
            "parallel": parallel,
            "swiglu": gated,
            "sub_norm": _sub_norm(shapes),
            "qkv_bias": any(f"{block}.attn.{name}" in shapes for name in ("qkv.bias", *QV_BIAS)),
            "key_bias": not any(f"{block}.attn.{name}" in shapes for name in QV_BIAS),
            "proj_bias": f"{block}.attn.proj.bias" in shapes,
            "qk_norm": f"{block}.attn.q_norm.weight" in shapes,
            "layer_scale": 1e-6 if scaled else None,
            "gelu": "exact",
        },
        "tokens": {
            "class_token": "cls_token" in tokens,
            "distilled": "dist_token" in tokens,
            "registers": tokens.get("reg_token", 0),
            "patch_norm": patch_norm,
            "pre_norm": pre_norm,
        },
        "pooling": "gap" if norm_after or "cls_token" not in tokens else "token",
        "norm": {"rms_norm": rms_norm, "epsilon": 1e-5 if clip or beit3 else 1e-6},
        "final_norm": "after" if norm_after else "before" if "norm.weight" in shapes else None,
        "position": "relative" if relative else "learned" if "pos_embed" in shapes else None,
        "num_classes": classes_of(shapes),
        **(CLIP if clip else IMAGENET if imagenet or beit3 else HALF),
        **({"rotary": "eva02"} if FREQUENCIES & set(shapes) else {}),
        **({"rotary": "rope-vit-mixed"} if f"{block}.attn.{MIXED}" in shapes else {}),
    }
    of_authors = _of_dinov3_authors(shapes, width, checkpoint) if PERIODS in shapes else {}
    arguments = merged(arguments, of_authors, config_arguments)
    if "attn_pool.latent" in shapes:
        arguments["pooling"] = "map"
        mlp_dim, *_ = shapes.get("attn_pool.mlp.fc1.weight", (arguments["mlp_dim"],))
        own = {} if mlp_dim == arguments["mlp_dim"] else {"mlp_dim": mlp_dim}
        own |= {"num_heads": 8, "over_prefix": True} if "_pe_" in checkpoint.config.get("architecture", "") else {}
        arguments["pool"] = own
    rules = {
        "num_heads": heads_from,
        "block.gelu": "timm's default",
        "norm.epsilon": "timm's rule",
        "mean": "CLIP's rule" if clip else "DeiT's rule" if imagenet or beit3 else "timm's rule for ViT",
        "evaluation": "timm's default",
    }
    return arguments, evaluation, rules | (_open_questions(arguments, checkpoint) if bare else {}) | origins


def of_dino(shapes, checkpoint):
    """As `architecture`, for files of DINO's, iBOT's and DINOv2's authors."""
    arguments, evaluation, origins = architecture(shapes, checkpoint)
    if origins["mean"] == "config.json":
        return arguments, evaluation, origins
    about = dict.fromkeys(("mean", "evaluation"), "the rule of DINO's authors")
    return arguments | IMAGENET, evaluation | {"crop_pct": 224 / 256}, origins | about


def of_moco(shapes, checkpoint):
    """As `architecture`, for files of MoCo v3's training."""
    arguments, evaluation, origins = of_dino(shapes, checkpoint)
    if origins["mean"] == "config.json":
        return arguments, evaluation, origins
    about = dict.fromkeys(("mean", "evaluation"), "the rule of MoCo's authors")
    return arguments, evaluation | {"interpolation": "bilinear"}, origins | about


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


def _sub_norm(shapes):
    """Returns which sublayers have a norm inside."""
    of_mlp, of_attention = (f"blocks.0.{part}.norm.weight" in shapes for part in ("mlp", "attn"))
    if of_attention and not of_mlp:
        raise ValueError("timm's models with a norm inside the attention and none inside the MLP cannot be loaded.")
    return "both" if of_attention else "mlp" if of_mlp else None


def _open_questions(arguments, checkpoint):
    """Returns the arguments that a file without config.json does not show, with the reasons."""
    reasons, gammas = {}, any(re.search(r"\.gamma_[12]$", name) for name in checkpoint.shapes)
    tokens, block = arguments["tokens"], arguments["block"]
    if tokens["pre_norm"]:
        reasons["block.gelu"] = Assumed("files of CLIP have 'exact' or 'quick'")
    elif block["sub_norm"] == "both" and not block["swiglu"]:
        reasons["norm.epsilon"] = Assumed("BEiT-3's")
    elif block["swiglu"]:
        pass
    elif arguments["pooling"] == "map" or (arguments["final_norm"] == "before" and not tokens["class_token"]):
        reasons["block.gelu"] = Assumed("files of SigLIP have 'exact' or 'tanh'")
    if arguments["position"] is None and not arguments.get("rotary"):
        reasons["position"] = Missing(
            "The file has no positions: they may be rotary or relative (DINOv3, RoPE-ViT, BEiT). Put timm's "
            "config.json next to it, or pass position=None for a model without positions."
        )
    elif arguments["final_norm"] == "after" and not (tokens["class_token"] or block["qkv_bias"]):
        reasons["block.norm_order"] = Assumed("ViT's; the residual post-norm model ('rpn') has the same tensors")
    elif arguments["position"] == "relative":
        reasons["mean"] = Assumed("BEiT's; BEiT v2 has ImageNet's")
    elif PERIODS in checkpoint.shapes:
        reasons["mean"] = Assumed("DINOv3's; its weights for satellite images have others")
    elif arguments["mean"] == HALF["mean"] and (tokens["class_token"] or arguments["final_norm"] == "before"):
        if arguments["pooling"] != "map":  # SigLIP's
            reasons["mean"] = Assumed("ViT's; files of the authors of DeiT, MAE, MoCo v3 and DINO have ImageNet's")
        if tokens["class_token"] and not arguments["num_classes"]:
            reasons["resample"] = Assumed("timm's; files of DINO's authors have 'bicubic-offset'")
    elif gammas and tokens["class_token"]:
        reasons["position"] = Assumed("DeiT-III's; RoPE-ViT has the same names, and rotary='rope-vit'")
    return reasons
