"""Reads and writes timm's `config.json`."""

import math
import re

from keras_vit.checkpoints.heads import problem_of
from keras_vit.checkpoints.tables import IMAGENET, Missing, channels_of, grid
from keras_vit.models.options import flat, merged
from keras_vit.preparing.evaluation_rule import before_crop

GELUS = {"gelu": "exact", "gelu_tanh": "tanh", "quick_gelu": "quick", "quickgelu": "quick"}
ACTIVATIONS = {"exact": "gelu", "tanh": "gelu_tanh", "quick": "quick_gelu"}
EVALUATION = ("mean", "std", "input_size", "crop_pct", "crop_mode", "interpolation")
CROP_MODES = {"center": "crop", "squash": "squash"}  # "border" adds a frame, which `preprocess` does not
UNSTATED = {**IMAGENET, "crop_pct": 0.875, "crop_mode": "center", "interpolation": "bicubic"}  # in a config.json
POOLINGS = {"avg": "gap", "token": "token", "map": "map", "": "none"}
# Only the name of an architecture shows these. The default of its pooling, where the tensors alone show another:
POOLING_OF = {r"dinov3|pe_(lang|spatial)": "avg"}
GELU_OF = {
    "quickgelu": "quick",
    "vit_(base_patch32|so400m_patch16|giantopt_patch16)_siglip|vit_large_patch16_siglip(_gap)?_512": "tanh",
    "naflexvit_.*siglip": "tanh",
}
HEADS_OF = {
    "vit_giantopt_patch16|vit_base_patch16_gap_224": 16,
    "vit_huge_plus_patch16_dinov3": 20,
    r"vit_pe_\w+_gigantic": 16,
    "vit_7b_patch16_dinov3": 32,
    "eva02_enormous": 16,
    "test_vit2?$": 2,
}
DINOV3 = {"rotary": "dinov3", "norm": {"epsilon": 1e-5}, **IMAGENET}


def _perception_encoder(reference, offset):
    options = {"base": 10000.0, "centered": False, "reference": reference, "columns_first": True, "interleaved": True}
    return {"rotary": options | ({"offset": offset} if offset else {})}


BLOCKS_OF = {  # what the name of an architecture says of its blocks, such as their rotary positions
    r"dinov3|lingbot": DINOV3,
    r"eva02_enormous": {"block": {"norm_order": "res-post"}},
    r"beit3": {"norm": {"epsilon": 1e-5}},
    r"rpn": {"block": {"norm_order": "res-post"}},
    r"eva02": {"rotary": "eva02"},
    r"rope_mixed(_ape)?_224": {"rotary": "rope-vit-mixed"},
    r"rope(_ape)?_224": {"rotary": "rope-vit"},
    r"rope_reg\d_gap_256": {"rotary": "eva02"},
    r"pe_(core|lang|spatial)_gigantic": _perception_encoder(32, 0.0),
    r"pe_core_base": _perception_encoder(14, 1.0),
    r"pe_core_(tiny|small|large)": _perception_encoder(24, 1.0),
    r"pe_(lang|spatial)_(tiny|small|base|large)": _perception_encoder(32, 1.0),
}
# `vit` computes an architecture if its name consists of these words. Others may have
# the same tensors but other blocks, or positions that are not in the file.
WORDS = (
    r"vit|naflexvit|deit3?|flexivit|eva(02)?|test|vit2|(x?small|tiny|base|large|huge|gigantic)|giant(opt)?|mediumd?|enormous|beit(v2|3)?|betwixt|little|p?wee|xp|36x1"
    r"|so\d+m\d?|intern\d+m|patch\d+|r|r26|r50|[ps]\d+|\d+|gap|reg\d+|plus|distilled|miil|clip|quickgelu|siglip|dinov2"
    r"|aimv2|[13]b|dinov3|qkvb|7b|lingbot|rope|rpn|mixed|ape|pe|core|lang|spatial|radio|v3|v4|tipsv2"
)
# Options that tensors show, that `read` reads, or that change nothing at inference. Any other option is refused.
OPTIONS = {
    "act_layer", "attn_drop_rate", "class_token", "depth", "drop_path_rate", "drop_rate", "dynamic_img_size",
    "embed_dim", "fc_norm", "final_norm", "fix_init", "global_pool", "img_size", "in_chans", "init_values",
    "mlp_ratio", "no_embed_class", "num_classes", "num_heads", "patch_drop_rate", "patch_size", "pos_drop_rate",
    "pos_embed", "pre_norm", "proj_drop_rate", "qk_norm", "qkv_bias", "reg_tokens", "strict_img_size", "weight_init",
}  # fmt: skip
POSITIONS = ("learn", "none")
ARCHITECTURES = {  # by the stem's stages: timm has no argument for them
    (): "vit_tiny_r_s16_p8_224",
    (2, 2, 2, 2): "vit_small_r26_s32_224",
    (3, 4, 9): "vit_base_r50_s16_224",
    (3, 4, 6, 3): "vit_large_r50_s32_224",
}
IMPOSSIBLE = {
    "distilled with registers": lambda a: a["tokens"]["distilled"] and a["tokens"]["registers"],
    "distilled without positions of its tokens": lambda a: (
        a["tokens"]["distilled"] and not a["tokens"]["class_position"]
    ),
    "distilled with a norm before the blocks": lambda a: a["tokens"]["distilled"] and a["tokens"]["pre_norm"],
    "distilled with gated MLPs": lambda a: a["tokens"]["distilled"] and a["block"]["swiglu"],
    "with attention pooling and gated MLPs": lambda a: a["pooling"] == "map" and a["block"]["swiglu"],
    "with relative positions": lambda a: a["position"] == "relative",
    "with norms inside a sublayer or after it": lambda a: a["block"]["sub_norm"] or a["block"]["norm_order"] != "pre",
    "with parallel blocks by an option": lambda a: a["block"]["parallel"],
    "with rotary positions": lambda a: a["rotary"] is not None,
    "with norms by the root mean square, or of patches": lambda a: a["norm"]["rms_norm"] or a["tokens"]["patch_norm"],
    "without biases in the blocks": lambda a: not a["block"]["proj_bias"],
    "with biases of queries and values only": lambda a: a["block"]["qkv_bias"] and not a["block"]["key_bias"],
    "with this stem": lambda a: a["stem"] is not None and getattr(a["stem"], "stages", None) not in ARCHITECTURES,
}


def read(config, gated=False):
    """Reads `config.json`.

    Args:
        config: Dictionary of the file's content; empty without a file.
        gated: Whether the MLPs are gated, with SiLU.

    Returns:
        The arguments of `keras_vit.vit` in it, how images are prepared, and where each of them is from.

    Raises:
        ValueError: If it describes a model that is not a plain ViT, though its weights have the same names.
    """
    name, options = str(config.get("architecture", "")), config.get("model_args") or {}
    # Older files have no "pretrained_cfg". Without any file the architecture's own rule applies, and not `UNSTATED`.
    options_of_images = config.get("pretrained_cfg") or {key: config[key] for key in EVALUATION if key in config}
    options_of_images = {key: value for key, value in options_of_images.items() if value}
    evaluation = UNSTATED | options_of_images if options_of_images or name else {}
    if evaluation.get("crop_mode", "center") not in CROP_MODES:
        raise ValueError(
            f"timm's `crop_mode` must be one of {', '.join(CROP_MODES)}. Received: {evaluation['crop_mode']!r}"
        )
    other = [f"{key}={value!r}" for key, value in options.items() if value and key not in OPTIONS]
    if name and not known(name):
        other.append(f"architecture={name!r}")
    if options.get("pos_embed", "learn") not in POSITIONS:
        other.append(f"pos_embed={options['pos_embed']!r}")
    pooling = options.get("global_pool", config.get("global_pool"))
    if pooling is None:
        pooling = next((kind for pattern, kind in POOLING_OF.items() if re.search(rf"_({pattern})(_|$)", name)), None)
    activation = options.get("act_layer")
    if pooling is not None and pooling not in POOLINGS:
        other.append(f"global_pool={pooling!r}")
    if activation not in ((None, "silu") if gated else (None, *GELUS)):
        other.append(f"act_layer={activation!r}")
    if other:
        raise ValueError(f"timm's models with {', '.join(other)} cannot be loaded: their logits would be wrong.")
    arguments = dict(_blocks(name) or {})
    origins = dict.fromkeys(flat(arguments), "config.json")
    heads = options.get("num_heads") or next((n for pattern, n in HEADS_OF.items() if re.match(pattern, name)), None)
    if heads:
        arguments["num_heads"], origins["num_heads"] = heads, "config.json"
    elif options.get("embed_dim"):
        origins["num_heads"] = Missing("config.json has embed_dim and no num_heads: pass num_heads.")
    if pooling is not None:
        arguments["pooling"] = POOLINGS[pooling]
    gelu = next((g for pattern, g in GELU_OF.items() if re.search(pattern, name)), "exact")
    if name or activation in GELUS:
        arguments = merged(arguments, {"block": {"gelu": GELUS.get(activation, gelu)}})
        origins["block.gelu"] = "config.json"
    for key in ("mean", "std"):
        if key in evaluation:
            arguments[key], origins["mean"] = (
                evaluation[key],
                "config.json" if "mean" in options_of_images else "timm's default",
            )
    size = options.get("img_size") or evaluation.get("input_size", [None])[1:]
    if size:
        arguments["image_size"] = tuple(size) if isinstance(size, list) else size
    share, mode = evaluation.get("crop_pct", 0.9), CROP_MODES[evaluation.get("crop_mode", "center")]
    sides = [size] if isinstance(size, int) else size
    if [math.floor(side / share) for side in sides] != before_crop(sides, {"crop_pct": [share] * len(sides)}):
        share *= 1 + 1e-6  # timm rounds 399.99... down, and `before_crop` does not
    rule = {
        "resize": "direct" if (mode, share) == ("squash", 1) else mode,
        "crop_pct": share,
        "crop_offset": "round",
        "interpolation": evaluation.get("interpolation", "bicubic"),
        "antialias": True,
    }
    return arguments, rule, origins | ({"evaluation": "config.json"} if options_of_images else {})


def known(name):
    """Returns whether `vit` computes timm's architecture of this name."""
    words = name.split("_")
    unclear = ({"rope", "pe"} & set(words) and _blocks(name) is None) or {"naflexvit", "radio"} <= set(words)
    return all(re.fullmatch(WORDS, word) for word in words) and not unclear


def _blocks(name):
    return next((options for pattern, options in BLOCKS_OF.items() if re.search(rf"(^|_)({pattern})(_|$)", name)), None)


def _ratio(mlp_dim, width):
    """Returns a ratio such that `int(width * ratio)` equals `mlp_dim`."""
    ratio = mlp_dim / width
    return ratio if int(width * ratio) == mlp_dim else (mlp_dim + 0.5) / width


def _crop_pct(share, size, lengths):
    """Returns the share, or one near it, with which timm's `floor(side / share)` gives these lengths of both sides."""
    shares = [share, *(side / (length + 0.5) for side, length in zip(size, lengths))]
    return next((s for s in shares if [math.floor(side / s) for side in size] == lengths), share)


def express(arguments, arrays):
    """Returns the arrays, and the `config.json` from which `timm.create_model("local-dir:...")` builds the model.

    Raises:
        ValueError: If timm has no model of this kind.
    """
    impossible = [name for name, is_so in IMPOSSIBLE.items() if is_so(arguments)]
    if impossible:
        raise ValueError(f"timm has no model {' or '.join(impossible)}.")
    tokens, block, size = arguments["tokens"], arguments["block"], arguments["image_size"]
    evaluation, share = arguments["evaluation"], 1.0
    if evaluation["resize"] in ("crop", "squash"):
        share = evaluation["crop_pct"]
        share = _crop_pct(share[0] if isinstance(share, list) else share, size, before_crop(size, evaluation))
    stem, pooling = arguments["stem"], {"gap": "avg", "none": ""}.get(arguments["pooling"], arguments["pooling"])
    model_args = {
        "global_pool": pooling,
        "img_size": list(arguments["image_size"]),
        "in_chans": arguments["channels"],
        "patch_size": list(arguments["patch_size"]),
        "embed_dim": arguments["width"],
        "depth": arguments["depth"],
        "num_heads": arguments["num_heads"],
        "mlp_ratio": _ratio(arguments["mlp_dim"] * (1 + block["swiglu"]), arguments["width"]),
        "qkv_bias": block["qkv_bias"],
        "qk_norm": block["qk_norm"],
        "init_values": block["layer_scale"],
        "class_token": tokens["class_token"],
        "reg_tokens": tokens["registers"],
        "no_embed_class": "pos_embed" in arrays and arrays["pos_embed"].shape[1] == math.prod(grid(arguments)),
        "pos_embed": "learn" if "pos_embed" in arrays else "none",
        "pre_norm": tokens["pre_norm"],
        "final_norm": arguments["final_norm"] is not None,
        "fc_norm": arguments["final_norm"] == "after",
        "act_layer": ACTIVATIONS[block["gelu"]],
    }
    architecture = "deit_base_distilled_patch16_224" if tokens["distilled"] else "vit_base_patch16_224"
    if tokens["pre_norm"]:  # only this architecture's name sets its epsilon; the same for the next two
        architecture = "vit_base_patch16_clip_224"
    if block["swiglu"]:
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
            "crop_pct": share,
            "crop_mode": "squash" if evaluation["resize"] in ("direct", "squash") else "center",
            "interpolation": "bilinear" if evaluation["interpolation"] == "area" else evaluation["interpolation"],
        },
    }
    config |= problem_of(arguments.get("gives"))  # which transformers reads from timm's files too
    if arguments.get("labels"):
        config["label_names"] = list(arguments["labels"])
    return arrays, {"config.json": config}
