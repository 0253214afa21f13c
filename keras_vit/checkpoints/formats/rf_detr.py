"""Names in files of RF-DETR, Roboflow's own and transformers': DINOv2 in windows, a projector, two stages of boxes."""

import re

from keras_vit.checkpoints.formats import huggingface_dinov2, transformers_config
from keras_vit.checkpoints.formats.coco import COCO
from keras_vit.checkpoints.formats.transformers_config import CONFIG
from keras_vit.checkpoints.tables import (
    CONV,
    DEPTHWISE,
    IMAGENET,
    LINEAR,
    SAME,
    Format,
    Missing,
    Otherwise,
    Row,
    blocks,
    each,
    need,
    parted,
    torch_dense,
    torch_norm,
)
from keras_vit.utils.resampling import square

PROJECTOR, DECODER = "backbone.0.projector.stages.0", "transformer.decoder.layers.{i}"
FIRST = "transformer.decoder.ref_point_head.layers.0.weight"  # in every file of this kind, and in no other
MASKS = "segmentation_head"
POINTWISE = each(lambda a, heads: a[:, :, 0, 0].T, lambda a, heads: a.T[:, :, None, None])
QKV = tuple(f"head/block{{i}}/attention/{part}" for part in ("query", "key", "value"))


def conv(ours, theirs):
    """Three rows: a convolution without a bias, and its normalization over channels."""
    return Row(f"{ours}/conv/kernel", f"{theirs}.conv.weight", CONV), *torch_norm(f"{ours}/norm", f"{theirs}.bn")


def stages(ours, theirs):
    """Rows of the two heads, of classes and of boxes."""
    classes, boxes = theirs
    return *torch_dense(f"{ours}/class", classes), *torch_dense(f"{ours}/box{{j}}", f"{boxes}.layers.{{j}}")


ROWS = (
    *(row for row in huggingface_dinov2.ROWS if not str(row.ours).startswith(("head", "('head"))),
    *conv("head/projector/first", f"{PROJECTOR}.0.cv1"),
    *conv("head/projector/pair{i}_{j}", f"{PROJECTOR}.0.m.{{i}}.cv{{j1}}"),
    *conv("head/projector/last", f"{PROJECTOR}.0.cv2"),
    *torch_norm("head/projector/norm", f"{PROJECTOR}.1"),
    *torch_dense("head/stage{i}/memory", "transformer.enc_output.{i}"),
    *torch_norm("head/stage{i}/norm", "transformer.enc_output_norm.{i}"),
    *stages("head/stage{i}/head", ("transformer.enc_out_class_embed.{i}", "transformer.enc_out_bbox_embed.{i}")),
    Row("head/references", "refpoint_embed.weight", SAME),
    Row("head/query", "query_feat.weight", SAME),
    *torch_dense("head/place{i}", "transformer.decoder.ref_point_head.layers.{i}"),
    Row(tuple(f"{part}/kernel" for part in QKV), f"{DECODER}.self_attn.in_proj_weight", parted(LINEAR, 3)),
    Row(tuple(f"{part}/bias" for part in QKV), f"{DECODER}.self_attn.in_proj_bias", parted(SAME, 3)),
    *torch_dense("head/block{i}/attention/proj", f"{DECODER}.self_attn.out_proj"),
    *torch_dense("head/block{i}/cross/offsets", f"{DECODER}.cross_attn.sampling_offsets"),
    *torch_dense("head/block{i}/cross/shares", f"{DECODER}.cross_attn.attention_weights"),
    *torch_dense("head/block{i}/cross/value", f"{DECODER}.cross_attn.value_proj"),
    *torch_dense("head/block{i}/cross/proj", f"{DECODER}.cross_attn.output_proj"),
    *torch_dense("head/block{i}/mlp/fc1", f"{DECODER}.linear1"),
    *torch_dense("head/block{i}/mlp/fc2", f"{DECODER}.linear2"),
    *torch_norm("head/block{i}/norm{j}", f"{DECODER}.norm{{j}}"),
    *torch_norm("head/norm", "transformer.decoder.norm"),
    *stages("head/head", ("class_embed", "bbox_embed")),
    Row("masks/block{i}/depthwise/kernel", f"{MASKS}.blocks.{{i}}.dwconv.weight", DEPTHWISE),
    Row("masks/block{i}/depthwise/bias", f"{MASKS}.blocks.{{i}}.dwconv.bias", SAME),
    *torch_norm("masks/block{i}/norm", f"{MASKS}.blocks.{{i}}.norm"),
    *torch_dense("masks/block{i}/dense", f"{MASKS}.blocks.{{i}}.pwconv1"),
    Row("masks/cells/kernel", f"{MASKS}.spatial_features_proj.weight", POINTWISE),
    Row("masks/cells/bias", f"{MASKS}.spatial_features_proj.bias", SAME),
    *torch_norm("masks/norm", f"{MASKS}.query_features_block.norm_in"),
    *torch_dense("masks/fc1", f"{MASKS}.query_features_block.layers.0"),
    *torch_dense("masks/fc2", f"{MASKS}.query_features_block.layers.2"),
    *torch_dense("masks/queries", f"{MASKS}.query_features_proj"),
    Row("masks/bias", f"{MASKS}.bias", SAME),
)
ALIASES = ((r"^backbone\.0\.encoder\.encoder\.", ""), *huggingface_dinov2.ALIASES)
NO_SETTINGS = (
    "No tensor of RF-DETR shows its windows and heads: put the source's config.json next to the file, or take the .pth "
    "file with its training's arguments."
)
# Roboflow's names of what is only sometimes so; with other values the same tensors compute something else.
COMPUTED = {"two_stage": True, "bbox_reparam": True, "lite_refpoint_refine": True, "layer_norm": True}
UNUSED_OPTIONS = ("do_pad", "pad_size", "format", "do_convert_annotations")  # of a processor to one size


def detect(names):
    return FIRST in names


def architecture(shapes, checkpoint):
    config, args = checkpoint.config, checkpoint.notes.get("args") or {}
    if any(name.startswith("backbone.0.projector.stages.1.") for name in shapes):
        raise ValueError("RF-DETR must have one feature map. Received: several, as in rf-detr-large of 2025")
    width, channels, *patch = need(shapes, "embeddings.patch_embeddings.projection.weight", 4)
    if not config and not args:
        raise ValueError(f"{NO_SETTINGS} Received: {str(checkpoint.path)!r}")
    stated = _of_config(config) if config else _of_args(args, width)
    taps, count = stated["taps"], blocks(shapes, re.compile(r"encoder\.layer\.(\d+)\."))
    if list(taps) != sorted(set(taps)) or taps[0] < 1 or taps[-1] > count:
        raise ValueError(f"Features must be of rising blocks from 1 to {count}. Received: {list(taps)}")
    whole = stated["whole"] if stated["whole"] is not None else taps
    table, side = square(need(shapes, "embeddings.position_embeddings", 3)[1] - 1), stated["size"]
    processor = dict(checkpoint.processor)
    if processor:
        processor = {name: value for name, value in processor.items() if name not in UNUSED_OPTIONS}
        size = processor.get("size") or {}
        side = (size["height"], size["width"]) if {"height", "width"} <= set(size) else side
    statistics, evaluation, prepared = transformers_config.read_processor(processor, "RF-DETR")
    evaluation = {**evaluation, "antialias": False}
    arguments = {
        "patch_size": tuple(patch),
        "channels": channels,
        "image_size": tuple(rows * pixels for rows, pixels in zip(table, patch)),
        "width": width,
        "depth": taps[-1],
        "num_heads": stated["heads"],
        "mlp_dim": need(shapes, "encoder.layer.0.mlp.fc1.weight", 2)[0],
        "norm": {"epsilon": stated["epsilon"]},
        "block": {"gelu": "exact", "layer_scale": 1.0},
        "tokens": {
            "class_token": True,
            "class_position": True,
            "windows": stated["windows"],
            "whole_blocks": tuple(i for i in whole if i < taps[-1] and stated["windows"] > 1),
        },
        "pooling": "none",
        "num_classes": 0,
        "runs_at": side,
        "maps": _head(shapes, stated, checkpoint),
        **(statistics or IMAGENET),
    }
    source = CONFIG if config else "the file's args"
    heads = source if stated["heads"] else Missing("No tensor shows the heads of the encoder: pass num_heads.")
    doubts = _doubts(checkpoint, arguments["maps"])
    return arguments, evaluation, prepared | {"num_heads": heads, "tokens.windows": source} | doubts


def _head(shapes, stated, checkpoint):
    """Returns what `models.map_heads.with_head` takes."""
    units, width = need(shapes, "class_embed.weight", 2)
    rows, groups = need(shapes, "refpoint_embed.weight", 2)[0], _count(shapes, r"transformer\.enc_output\.(\d+)\.")
    names = _names(checkpoint, units)
    kept = [i for i, name in enumerate(names) if name is not None]
    return {
        "kind": "boxes",
        "blocks": tuple(tap - 1 for tap in stated["taps"]),
        "normed": True,
        "kept": None if len(kept) == units else tuple(kept),
        "names": tuple(names[i] for i in kept) if names and not str(names[kept[0]]).startswith("LABEL_") else None,
        "units": units,
        "queries": rows // groups,
        "width": width,
        "depth": _count(shapes, r"transformer\.decoder\.layers\.(\d+)\."),
        "num_heads": stated["self_heads"],
        "cross_heads": stated["cross_heads"],
        "points": need(shapes, "transformer.decoder.layers.0.cross_attn.attention_weights.bias", 1)[0]
        // stated["cross_heads"],
        "mlp_dim": need(shapes, "transformer.decoder.layers.0.linear1.weight", 2)[0],
        "steps": _count(shapes, rf"{re.escape(PROJECTOR)}\.0\.m\.(\d+)\."),
        "groups": groups,
        "projector_epsilon": stated["projector_epsilon"],
        "dropout": 0.0,
        "masks": stated["down"] if f"{MASKS}.bias" in shapes else None,
    }


def _count(shapes, pattern):
    return blocks(shapes, re.compile(pattern))


def _names(checkpoint, units):
    """Returns the name of each output, `None` for those that are no class: COCO has ids without a class.

    Outputs without any names are COCO's where there are as many; else they are called by their numbers.
    """
    names = _stated_names(checkpoint)
    if isinstance(names, dict):
        found = {int(number): name for number, name in names.items()}
    else:
        found = dict(enumerate(names)) if names else COCO if units == max(COCO) + 1 else {}
    found = {number: name for number, name in found.items() if name not in ("N/A", None) and 0 <= number < units}
    return [found.get(i) for i in range(units)] if found else [f"LABEL_{i}" for i in range(units)]


def _stated_names(checkpoint):
    """Returns the names that a file states: a dictionary by number, or a list; `None` if it has none."""
    return checkpoint.config.get("id2label") or (checkpoint.notes.get("args") or {}).get("class_names")


def _doubts(checkpoint, maps):
    """Returns a warning, as an origin by its argument's name, where the file does not say which outputs are classes."""
    names, units = _stated_names(checkpoint), maps["units"]
    if not names and maps["names"]:
        return {"classes": Otherwise(f"it names no classes; its {units} outputs are taken for COCO's ids.")}
    if isinstance(names, list) and units > len(names) + 1:  # one more is usual
        first = f"the first {len(names)} are taken, as Roboflow numbers classes from 0"
        return {"classes": Otherwise(f"it has {units} outputs and {len(names)} names; {first}.")}
    return {}


def _of_config(config):
    """Returns what transformers' `config.json` states."""
    if config.get("model_type") != "rf_detr":
        raise ValueError(f"`model_type` must be rf_detr. Received: {config.get('model_type')!r}")
    backbone = config.get("backbone_config") or {}
    other = {
        name: value
        for name, value, usual in (
            ("hidden_act", backbone.get("hidden_act", "gelu"), "gelu"),
            ("activation_function", config.get("activation_function", "silu"), "silu"),
            ("decoder_activation_function", config.get("decoder_activation_function", "relu"), "relu"),
            ("num_feature_levels", config.get("num_feature_levels", 1), 1),
            ("use_swiglu_ffn", backbone.get("use_swiglu_ffn", False), False),
            ("apply_layernorm", backbone.get("apply_layernorm", True), True),
        )
        if value != usual
    }
    if other:
        raise ValueError(f"RF-DETR with {', '.join(f'{k}={v!r}' for k, v in other.items())} cannot be loaded.")
    depth, stages = backbone["num_hidden_layers"], backbone.get("out_features") or []
    taps = backbone.get("out_indices") or [int(str(name).removeprefix("stage")) for name in stages] or [depth]
    windowed = backbone.get("window_block_indexes")
    return {
        "taps": [tap % (depth + 1) for tap in taps],
        "whole": None if windowed is None else [i for i in range(depth) if i not in windowed],
        "windows": backbone.get("num_windows", 4),
        "heads": backbone.get("num_attention_heads", 6),
        "epsilon": backbone.get("layer_norm_eps", 1e-6),
        "self_heads": config.get("decoder_self_attention_heads", 8),
        "cross_heads": config.get("decoder_cross_attention_heads", 16),
        "projector_epsilon": config.get("layer_norm_eps", 1e-5),
        "down": config.get("mask_downsample_ratio", 4),
        "size": None,
    }


def _of_args(args, width):
    """Returns what the arguments of Roboflow's training state, which its files keep."""
    if other := [f"{name}={args[name]!r}" for name, value in COMPUTED.items() if args.get(name, value) != value]:
        raise ValueError(f"RF-DETR with {', '.join(other)} cannot be loaded: it computes something else.")
    lacking = [name for name in ("num_windows", "out_feature_indexes", "sa_nheads", "ca_nheads") if name not in args]
    if lacking:
        raise ValueError(f"{NO_SETTINGS} Received: args without {', '.join(lacking)}")
    size = args.get("resolution")
    return {
        "taps": list(args["out_feature_indexes"]),
        "whole": None,
        "windows": args["num_windows"],
        "heads": width // 64 if width % 64 == 0 else None,
        "epsilon": 1e-6,
        "self_heads": args["sa_nheads"],
        "cross_heads": args["ca_nheads"],
        "projector_epsilon": 1e-6,
        "down": args.get("mask_downsample_ratio", 4),
        "size": None if size is None else (size, size),
    }


FORMAT = Format(
    name="huggingface-rf-detr",
    rows=ROWS,
    detect=detect,
    aliases=ALIASES,
    architecture=architecture,
    placeholders=huggingface_dinov2.FORMAT.placeholders,
    # Blocks after the last one whose features are used, as in the base size, are no part of the model.
    ignored=r"embeddings\.mask_token|_kp_active_mask|encoder\.layer\.\d+\..*",
    head_names=rf"(backbone\.0\.projector|transformer|refpoint_embed|query_feat|class_embed|bbox_embed|{MASKS})\..*",
    resample="bicubic-antialias",
)
