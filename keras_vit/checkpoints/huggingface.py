"""Names in Hugging Face transformers' files: ViT and DeiT."""

import math
import re

import numpy as np

from keras_vit.checkpoints.tables import (
    CONV,
    HALF,
    IMAGENET,
    LINEAR,
    SAME,
    Format,
    Row,
    blocks,
    channels_of,
    grid,
    joined,
    need,
    published_heads,
    renamed,
    torch_dense,
    torch_norm,
)

BLOCK = "encoder.layer.{i}"
QKV = tuple(f"{BLOCK}.attention.attention.{part}" for part in ("query", "key", "value"))


ROWS = (
    Row("encoder/projection/kernel", "embeddings.patch_embeddings.projection.weight", CONV),
    Row("encoder/projection/bias", "embeddings.patch_embeddings.projection.bias", SAME),
    Row("encoder/class_token", "embeddings.cls_token", SAME),
    Row("encoder/distillation_token", "embeddings.distillation_token", SAME),
    Row("encoder/register_tokens", "embeddings.distillation_token", SAME),  # DeiT with one head: an unused token
    Row("encoder/position_embedding", "embeddings.position_embeddings", SAME),
    *torch_norm("block_{i}/norm1", f"{BLOCK}.layernorm_before"),
    Row("block_{i}/attention/qkv/kernel", tuple(f"{part}.weight" for part in QKV), joined(LINEAR)),
    Row("block_{i}/attention/qkv/bias", tuple(f"{part}.bias" for part in QKV), joined(SAME)),
    *torch_dense("block_{i}/attention/proj", f"{BLOCK}.attention.output.dense"),
    *torch_norm("block_{i}/norm2", f"{BLOCK}.layernorm_after"),
    *torch_dense("block_{i}/mlp/fc1", f"{BLOCK}.intermediate.dense"),
    *torch_dense("block_{i}/mlp/fc2", f"{BLOCK}.output.dense"),
    *torch_norm("norm", "layernorm"),
    *torch_dense("pre_logits", "pooler.dense"),
    *torch_dense("head", "{head}"),
    *torch_dense("head_distilled", "distillation_classifier"),
)

# Version 5 has other names in memory; its `save_pretrained` writes the older ones.
ALIASES = (
    (r"^(vit|deit)\.", ""),
    (r"^layers\.", "encoder.layer."),
    (r"^decoder\.decoder_encoder\.layer\.", "decoder.decoder_layers."),  # version 5 writes a masked autoencoder's so
    (r"\.attention\.([qkv])_proj\.", lambda m: f".attention.attention.{dict(q='query', k='key', v='value')[m[1]]}."),
    (r"\.attention\.o_proj\.", ".attention.output.dense."),
    (r"\.mlp\.fc1\.", ".intermediate.dense."),
    (r"\.mlp\.fc2\.", ".output.dense."),
)
GELUS = {"gelu": "exact", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh", "quick_gelu": "quick"}
# The model types that `vit` computes, and their default epsilon.
KINDS = dict.fromkeys((None, "vit", "deit", "vit_mae", "dpt", "flava_image_model"), 1e-12) | {"vit_msn": 1e-6}
INTERPOLATIONS = {2: "bilinear", 3: "bicubic"}


def detect(names):
    return any(name.endswith("embeddings.patch_embeddings.projection.weight") for name in names)


def canonical(shapes):
    return renamed(shapes, ALIASES)


def architecture(shapes, checkpoint):
    config = checkpoint.config
    width, channels, *patch_size = need(shapes, "embeddings.patch_embeddings.projection.weight", 4)
    block = BLOCK.format(i=0)
    if config.get("hidden_size", width) != width:
        raise ValueError(f"config.json says hidden_size {config['hidden_size']}, and the weights have {width}.")
    kind = config.get("model_type")
    if kind not in KINDS or config.get("is_hybrid"):
        hybrid = ", is_hybrid" if config.get("is_hybrid") else ""
        raise ValueError(f"`model_type` must be one of {', '.join(filter(None, KINDS))}. Received: {kind!r}{hybrid}")
    heads, heads_from = config.get("num_attention_heads"), "config.json"
    if heads is None:
        heads, heads_from = published_heads(width)
    if config.get("hidden_act", "gelu") not in GELUS:
        raise ValueError(f"`hidden_act` must be one of {', '.join(GELUS)}. Received: {config['hidden_act']!r}")
    distillation = "embeddings.distillation_token" in shapes
    head = next((n for n in ("classifier", "cls_classifier") if f"{n}.bias" in shapes), None)
    one_head = distillation and head == "classifier"
    arguments = {
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, re.compile(r"encoder\.layer\.(\d+)\.")),
        "num_heads": heads,
        "mlp_dim": need(shapes, f"{block}.intermediate.dense.weight", 2)[0],
        "qkv_bias": f"{QKV[0].format(i=0)}.bias" in shapes,
        "class_token": True,
        "class_position": True,
        "pooling": "token",
        "distilled": distillation and not one_head,
        "registers": int(one_head),
        "num_classes": need(shapes, f"{head}.bias", 1)[0] if head else 0,
        "gelu": GELUS[config.get("hidden_act", "gelu")],
        "epsilon": config.get("layer_norm_eps", KINDS[kind]),
        **(IMAGENET if distillation else HALF),
    }
    if "image_size" in config:
        size = config["image_size"]
        arguments["image_size"] = tuple(size) if isinstance(size, list) else size
    evaluation, evaluation_from = _evaluation(checkpoint.processor, arguments, distillation)
    origins = {
        "num_heads": heads_from,
        "gelu": "config.json" if "hidden_act" in config else "transformers' default",
        "epsilon": "config.json" if "layer_norm_eps" in config else "transformers' default",
        "mean": evaluation_from,
        "evaluation": evaluation_from,
    }
    return arguments, evaluation, origins


def _evaluation(processor, arguments, deit):
    """Sets mean and deviation in `arguments`; returns how images are resized, and where that is from."""
    if not processor.get("do_rescale", True) or abs(processor.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-6:
        raise ValueError("preprocessor_config.json must divide pixels by 255, as all published models do.")
    for ours, theirs, neutral in (("mean", "image_mean", 0.0), ("std", "image_std", 1.0)):
        arguments[ours] = processor.get(theirs, arguments[ours]) if processor.get("do_normalize", True) else neutral
    crop = processor.get("do_center_crop", deit)
    size, cropped = processor.get("size") or {}, processor.get("crop_size") or {}
    edge = size if isinstance(size, int) else size.get("shortest_edge", size.get("height", 256))
    cropped = cropped if isinstance(cropped, int) else cropped.get("height", 224)
    evaluation = {
        "resize": "crop" if crop else "direct",
        "crop_pct": cropped / edge if crop else None,
        "interpolation": INTERPOLATIONS.get(processor.get("resample"), "bicubic" if deit else "bilinear"),
        "antialias": True,
    }
    return evaluation, "preprocessor_config.json" if processor else "transformers' default"


def express(arguments, arrays):
    """Returns the arrays under the names of `save_pretrained`, and the two JSON files for the directory."""
    deit = arguments["distilled"] or arguments["registers"] == 1
    kind, has_head = "DeiT" if deit else "ViT", bool(arguments["num_classes"])
    if {"embeddings.position_embeddings", "embeddings.cls_token"} - set(arrays):
        raise ValueError("Hugging Face's ViT must have a class token and a table of positions. The model lacks one.")
    position = arrays["embeddings.position_embeddings"]
    missing = math.prod(grid(arguments)) + 1 + deit - position.shape[1]  # transformers gives every token a position
    arrays["embeddings.position_embeddings"] = np.pad(position, ((0, 0), (max(missing, 0), 0), (0, 0)))
    if has_head:
        arrays = {n if "classifier." in n else f"{kind.lower()}.{n}": array for n, array in arrays.items()}
    suffix = "ForImageClassification" + "WithTeacher" * bool(arguments["distilled"]) if has_head else "Model"
    names = arguments.get("labels") or [f"LABEL_{i}" for i in range(arguments["num_classes"])]
    labels = {str(i): name for i, name in enumerate(names)}
    config = {
        "architectures": [kind + suffix],
        "model_type": kind.lower(),
        "hidden_size": arguments["width"],
        "num_hidden_layers": arguments["depth"],
        "num_attention_heads": arguments["num_heads"],
        "intermediate_size": arguments["mlp_dim"],
        "hidden_act": next(theirs for theirs, ours in GELUS.items() if ours == arguments["gelu"]),
        "layer_norm_eps": arguments["epsilon"],
        "image_size": _one(arguments["image_size"]),
        "patch_size": _one(arguments["patch_size"]),
        "num_channels": arguments["channels"],
        "qkv_bias": arguments["qkv_bias"],
        "id2label": labels,
        "label2id": {name: int(i) for i, name in labels.items()},
    }
    evaluation, (height, width) = arguments["evaluation"], arguments["image_size"]
    crop = evaluation.get("resize") == "crop"
    processor = {
        "image_processor_type": f"{kind}ImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": int(height / evaluation["crop_pct"])} if crop else {"height": height, "width": width},
        "do_center_crop": crop,
        "crop_size": {"height": height, "width": width},
        "resample": next((k for k, name in INTERPOLATIONS.items() if name == evaluation.get("interpolation")), 2),
        "do_rescale": True,
        "do_normalize": True,
        "image_mean": channels_of(arguments, "mean"),
        "image_std": channels_of(arguments, "std"),
    }
    return arrays, {"config.json": config, "preprocessor_config.json": processor}


def _one(pair):
    return pair[0] if pair[0] == pair[1] else list(pair)


FORMAT = Format(
    name="huggingface",
    rows=ROWS,
    detect=detect,
    canonical=canonical,
    architecture=architecture,
    express=express,
    placeholders=lambda arguments: {"head": "cls_classifier" if arguments["distilled"] else "classifier"},
    ignored=r"embeddings\.mask_token|pooler\..*|decoder\..*",
    head_names=r"(cls_|distillation_)?classifier\..*",
    resample="bicubic",
    resample_patches="bilinear",
)
