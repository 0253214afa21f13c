"""Names of timm's state dicts: ViT, DeiT, DeiT-III, registers, attention pooling, hybrids."""

import math
import re

from keras_vit.checkpoints.tables import (
    CONV,
    FLAT_TO_HEADS,
    HALF,
    IMAGENET,
    LINEAR,
    LINEAR_HEADS_IN,
    LINEAR_HEADS_OUT,
    SAME,
    Format,
    Row,
    blocks,
    channels_of,
    dense,
    grid,
    joined,
    need,
    norm,
    parted,
    published_heads,
    stages,
)
from keras_vit.layers import ResNetStem

BLOCK = "blocks.{i}"
UNIT, OUR_UNIT = "patch_embed.backbone.stages.{i}.blocks.{j}", "stem/stage{i}_unit{j}"
KEY_VALUE = ("pool/attention/key", "pool/attention/value")


def _norm(ours, theirs):
    return norm(ours, theirs, ".weight", ".bias")


def _dense(ours, theirs):
    return dense(ours, theirs, ".weight", ".bias", LINEAR)


ROWS = (
    Row("stem/root/kernel", "{root}.conv.weight", CONV),
    *_norm("stem/root_norm", "{root}.norm"),
    *(Row(f"{OUR_UNIT}/conv{k}/kernel", f"{UNIT}.conv{k}.weight", CONV) for k in (1, 2, 3)),
    *(row for k in (1, 2, 3) for row in _norm(f"{OUR_UNIT}/norm{k}", f"{UNIT}.norm{k}")),
    Row(f"{OUR_UNIT}/shortcut/kernel", f"{UNIT}.downsample.conv.weight", CONV),
    *_norm(f"{OUR_UNIT}/shortcut_norm", f"{UNIT}.downsample.norm"),
    Row("encoder/projection/kernel", "patch_embed.proj.weight", CONV),
    Row("encoder/projection/bias", "patch_embed.proj.bias", SAME),
    Row("encoder/class_token", "cls_token", SAME),
    Row("encoder/distillation_token", "dist_token", SAME),
    Row("encoder/register_tokens", "reg_token", SAME),
    Row("encoder/position_embedding", "pos_embed", SAME),
    *_norm("norm_pre", "norm_pre"),
    *_norm("block_{i}/norm1", f"{BLOCK}.norm1"),
    *_dense("block_{i}/attention/qkv", f"{BLOCK}.attn.qkv"),
    *_norm("block_{i}/attention/q_norm", f"{BLOCK}.attn.q_norm"),
    *_norm("block_{i}/attention/k_norm", f"{BLOCK}.attn.k_norm"),
    *_dense("block_{i}/attention/proj", f"{BLOCK}.attn.proj"),
    Row("block_{i}/scale1/gamma", f"{BLOCK}.ls1.gamma", SAME),
    *_norm("block_{i}/norm2", f"{BLOCK}.norm2"),
    *_dense("block_{i}/mlp/fc1", f"{BLOCK}.mlp.fc1"),
    Row("block_{i}/mlp/fc1/kernel", (f"{BLOCK}.mlp.fc1_g.weight", f"{BLOCK}.mlp.fc1_x.weight"), joined(LINEAR, 2)),
    Row("block_{i}/mlp/fc1/bias", (f"{BLOCK}.mlp.fc1_g.bias", f"{BLOCK}.mlp.fc1_x.bias"), joined(SAME, 2)),
    *_dense("block_{i}/mlp/fc2", f"{BLOCK}.mlp.fc2"),
    Row("block_{i}/scale2/gamma", f"{BLOCK}.ls2.gamma", SAME),
    *_norm("norm", "{norm}"),
    Row("pool/probe", "attn_pool.latent", SAME),
    Row("pool/attention/query/kernel", "attn_pool.q.weight", LINEAR_HEADS_IN),
    Row("pool/attention/query/bias", "attn_pool.q.bias", FLAT_TO_HEADS),
    Row(tuple(f"{part}/kernel" for part in KEY_VALUE), "attn_pool.kv.weight", parted(LINEAR_HEADS_IN)),
    Row(tuple(f"{part}/bias" for part in KEY_VALUE), "attn_pool.kv.bias", parted(FLAT_TO_HEADS)),
    Row("pool/attention/attention_output/kernel", "attn_pool.proj.weight", LINEAR_HEADS_OUT),
    Row("pool/attention/attention_output/bias", "attn_pool.proj.bias", SAME),
    *_norm("pool/norm", "attn_pool.norm"),
    *_dense("pool/mlp/fc1", "attn_pool.mlp.fc1"),
    *_dense("pool/mlp/fc2", "attn_pool.mlp.fc2"),
    *_dense("head", "head"),
    *_dense("head_distilled", "head_dist"),
)

# What the authors' own files say where timm's say otherwise: DeiT-III, DINOv2.
ALIASES = (
    (r"\.gamma_([12])$", r".ls\1.gamma"),
    (r"^register_tokens$", "reg_token"),
    (r"\.mlp\.w12\.", ".mlp.fc1."),
    (r"\.mlp\.w3\.", ".mlp.fc2."),
)
ACTIVATIONS = {"exact": "gelu", "tanh": "gelu_tanh", "quick": "quick_gelu"}
ARCHITECTURES = {  # of stems, which no argument of timm's describes
    (): "vit_tiny_r_s16_p8_224",
    (2, 2, 2, 2): "vit_small_r26_s32_224",
    (3, 4, 9): "vit_base_r50_s16_224",
    (3, 4, 6, 3): "vit_large_r50_s32_224",
}
TANH = re.compile("vit_(base_patch32|so400m_patch16|giantopt_patch16)_siglip|vit_large_patch16_siglip(_gap)?_512")
GELUS = {"gelu": "exact", "gelu_tanh": "tanh", "quick_gelu": "quick", "quickgelu": "quick"}


def detect(names):
    return "patch_embed.proj.weight" in names


def canonical(shapes):
    found = {}
    for name in shapes:
        short = name
        for pattern, replacement in ALIASES:
            short = re.sub(pattern, replacement, short)
        found[short] = name
    return found


def architecture(shapes, checkpoint):
    config, said = checkpoint.config, checkpoint.config.get("model_args") or {}
    evaluation = config.get("pretrained_cfg") or {}
    name = str(config.get("architecture", ""))
    width, channels, *patch_size = need(shapes, "patch_embed.proj.weight", 4)
    block = BLOCK.format(i=0)
    mlp_dim = need(shapes, f"{block}.mlp.fc2.weight", 2)[1]
    gated = f"{block}.mlp.fc1_g.weight" in shapes or need(shapes, f"{block}.mlp.fc1.weight", 2)[0] == 2 * mlp_dim
    tokens = {token: shapes[token][1] for token in ("cls_token", "dist_token", "reg_token")
              if token in shapes and need(shapes, token, 3)}  # fmt: skip
    norm_after = "fc_norm.weight" in shapes
    pooling = "map" if "attn_pool.latent" in shapes else "gap" if norm_after or "cls_token" not in tokens else "token"
    pooling = {"avg": "gap", "token": "token", "map": "map", "": "none"}.get(config.get("global_pool"), pooling)
    if "num_heads" in said:
        heads, heads_from = said["num_heads"], "config.json"
    elif f"{block}.attn.q_norm.weight" in shapes:
        heads, heads_from = width // need(shapes, f"{block}.attn.q_norm.weight", 1)[0], "the q-k norm's width"
    else:
        heads, heads_from = published_heads(width)
    stem = None
    root = next(
        (n for n in ("patch_embed.backbone.stem", "patch_embed.backbone") if f"{n}.conv.weight" in shapes), None
    )
    if root:
        first, channels, *_ = need(shapes, f"{root}.conv.weight", 4)
        units = stages(shapes, re.compile(r"patch_embed\.backbone\.stages\.(\d+)\.blocks\.(\d+)\."))
        stem = ResNetStem(units, width=first, epsilon=1e-5, standardize="timm", name="stem")
    pre_norm = "norm_pre.weight" in shapes
    scaled = f"{block}.ls1.gamma" in shapes
    imagenet = {"dist_token", "mask_token"} & set(shapes) or (scaled and "reg_token" not in tokens)  # DeiT, DINOv2
    gelu = GELUS.get(said.get("act_layer"), "quick" if "quickgelu" in name else "tanh" if TANH.match(name) else "exact")
    arguments = {
        "stem": stem,
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"blocks\.(\d+)\.")),
        "num_heads": heads,
        "mlp_dim": mlp_dim,
        "swiglu": gated,
        "qkv_bias": f"{block}.attn.qkv.bias" in shapes,
        "qk_norm": f"{block}.attn.q_norm.weight" in shapes,
        "layer_scale": 1e-6 if scaled else None,
        "class_token": "cls_token" in tokens,
        "distilled": "dist_token" in tokens,
        "registers": tokens.get("reg_token", 0),
        "pooling": pooling,
        "pre_norm": pre_norm,
        "final_norm": "after" if norm_after else "before" if "norm.weight" in shapes else None,
        "position": "learned" if "pos_embed" in shapes else None,
        "num_classes": need(shapes, "head.bias", 1)[0] if "head.bias" in shapes else 0,
        "gelu": gelu,
        "epsilon": 1e-5 if pre_norm else 1e-6,
        **{k: evaluation.get(k, v) for k, v in (IMAGENET if imagenet else HALF).items()},
    }
    size = evaluation.get("input_size")
    if size:
        arguments["image_size"] = tuple(size[1:])
    rule = {
        "resize": "direct" if evaluation.get("crop_mode") == "squash" else "crop",
        "crop_pct": evaluation.get("crop_pct", 0.9),
        "interpolation": evaluation.get("interpolation", "bicubic"),
        "antialias": True,
    }
    origins = {
        "num_heads": heads_from,
        "gelu": "config.json" if name or said else "timm's default",
        "epsilon": "timm's rule",
        "mean": "config.json" if evaluation else "DeiT's rule" if imagenet else "timm's rule for ViT",
        "evaluation": "config.json" if evaluation else "timm's default",
    }
    return arguments, rule, origins


def words(arguments):
    stem = arguments["stem"]
    return {
        "norm": "fc_norm" if arguments["final_norm"] == "after" else "norm",
        "root": "patch_embed.backbone" + (".stem" if getattr(stem, "stages", ()) else ""),
    }


def _ratio(mlp_dim, width):
    """Returns the ratio by which `int(width * ratio)` is `mlp_dim`."""
    ratio = mlp_dim / width
    return ratio if int(width * ratio) == mlp_dim else (mlp_dim + 0.5) / width


def express(arguments, arrays):
    """Returns the arrays, and the `config.json` from which `timm.create_model("local-dir:...")` builds the model."""
    stem, pooling = arguments["stem"], {"gap": "avg", "none": ""}.get(arguments["pooling"], arguments["pooling"])
    model_args = {
        "global_pool": pooling,
        "img_size": list(arguments["image_size"]),
        "in_chans": arguments["channels"],
        "patch_size": list(arguments["patch_size"]),
        "embed_dim": arguments["width"],
        "depth": arguments["depth"],
        "num_heads": arguments["num_heads"],
        "mlp_ratio": _ratio(arguments["mlp_dim"] * (1 + arguments["swiglu"]), arguments["width"]),
        "qkv_bias": arguments["qkv_bias"],
        "qk_norm": arguments["qk_norm"],
        "init_values": arguments["layer_scale"],
        "class_token": arguments["class_token"],
        "reg_tokens": arguments["registers"],
        "no_embed_class": arrays["pos_embed"].shape[1] == math.prod(grid(arguments))
        if "pos_embed" in arrays
        else False,
        "pos_embed": "learn" if "pos_embed" in arrays else "none",
        "pre_norm": arguments["pre_norm"],
        "final_norm": arguments["final_norm"] is not None,
        "fc_norm": arguments["final_norm"] == "after",
        "act_layer": ACTIVATIONS[arguments["gelu"]],
    }
    architecture = "deit_base_distilled_patch16_224" if arguments["distilled"] else "vit_base_patch16_224"
    if arguments["pre_norm"]:  # and with it epsilon, which only an architecture's name says, like the next two
        architecture = "vit_base_patch16_clip_224"
    if arguments["swiglu"]:
        architecture = "vit_giant_patch14_dinov2"
        del model_args["act_layer"]
    if stem is not None:
        architecture = ARCHITECTURES.get(stem.stages, architecture)
        del model_args["patch_size"]
    config = {
        "architecture": architecture,
        "num_classes": arguments["num_classes"],
        "num_features": arguments["width"],
        "global_pool": pooling,
        "model_args": model_args,
        "pretrained_cfg": {
            "num_classes": arguments["num_classes"],
            "input_size": [arguments["channels"], *arguments["image_size"]],
            "mean": channels_of(arguments, "mean"),
            "std": channels_of(arguments, "std"),
            "crop_pct": arguments["evaluation"].get("crop_pct") or 1.0,
            "crop_mode": "squash" if arguments["evaluation"].get("resize") == "direct" else "center",
            "interpolation": arguments["evaluation"].get("interpolation", "bicubic"),
        },
    }
    return arrays, {"config.json": config}


FORMAT = Format(
    name="timm",
    rows=ROWS,
    detect=detect,
    canonical=canonical,
    architecture=architecture,
    express=express,
    words=words,
    ignored=r"mask_token",
    heads=r"head\..*|head_dist\..*|pre_logits\..*",
    resample="bicubic-antialias",
    resample_patches="bicubic-antialias",
)
