"""Reads and writes Hugging Face transformers' `config.json` and `preprocessor_config.json`."""

from keras_vit.checkpoints.tables import CLIP, HALF, IMAGENET, channels_of, published_heads

GELUS = {"gelu": "exact", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh", "quick_gelu": "quick"}
INTERPOLATIONS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}  # Pillow's numbers
CONFIG, PROCESSOR, DEFAULT = "config.json", "preprocessor_config.json", "transformers' default"


def _processor(statistics, resample, size=None):
    """Returns what a processor does by default; with `size`, it crops 224 pixels after resizing to that."""
    crop = {"do_center_crop": size is not None, "size": size or {}, "crop_size": 224}
    return {"image_mean": statistics["mean"], "image_std": statistics["std"], "resample": resample, **crop}


PROCESSORS = {  # without preprocessor_config.json: that of the published models
    "ViT": _processor(HALF, resample=2),
    "MAE": _processor(IMAGENET, resample=2),
    "DeiT": _processor(IMAGENET, resample=3, size={"height": 256, "width": 256}),
    "BEiT": _processor(HALF, resample=3),
    "YOLOS": _processor(IMAGENET, resample=2),
    "DINOv2": _processor(IMAGENET, resample=3, size={"shortest_edge": 256}),
    "DINOv3": _processor(IMAGENET, resample=2),
    "CLIP": _processor(CLIP, resample=3, size={"shortest_edge": 224}),
    "SigLIP": _processor(HALF, resample=3),
}
NOT_CROPPING = ("ViT", "DPT")  # image processors that only resize
SHORTEST_EDGE = ("CLIP", "DINOv2", "Bit")  # kinds, and image processors, for which one number is the shorter side


def read_model(config, width, defaults):
    """Reads `config.json`.

    Args:
        config: Dictionary of the file's content, or its part on images; empty without a file.
        width: Width of the encoder, from the tensors.
        defaults: Maps the model types that `vit` computes to what transformers assumes where the file says nothing;
            `None` stands for no file.

    Returns:
        `vit`'s arguments that the tensors do not show, and where each of them is from.

    Raises:
        ValueError: If it describes another kind of model, or another width.
    """
    if config.get("hidden_size", width) != width:
        raise ValueError(f"config.json says hidden_size {config['hidden_size']}, and the weights have {width}.")
    kind = config.get("model_type")
    if kind not in defaults or config.get("is_hybrid"):
        hybrid = ", is_hybrid" if config.get("is_hybrid") else ""
        raise ValueError(f"`model_type` must be one of {', '.join(filter(None, defaults))}. Received: {kind!r}{hybrid}")
    stated = defaults[kind] | config
    if stated["hidden_act"] not in GELUS:
        raise ValueError(f"`hidden_act` must be one of {', '.join(GELUS)}. Received: {stated['hidden_act']!r}")
    names = {"num_heads": "num_attention_heads", "gelu": "hidden_act", "epsilon": "layer_norm_eps"}
    origins = {ours: CONFIG if theirs in config else DEFAULT for ours, theirs in names.items()}
    arguments = {ours: stated.get(theirs) for ours, theirs in names.items()}
    arguments["gelu"] = GELUS[arguments["gelu"]]
    if arguments["num_heads"] is None:
        arguments["num_heads"], origins["num_heads"] = published_heads(width)
    if "image_size" in stated:
        size = stated["image_size"]
        arguments["image_size"] = tuple(size) if isinstance(size, list) else size
    return arguments, origins


def read_processor(processor, kind):
    """Reads `preprocessor_config.json`.

    Args:
        processor: Dictionary of the file's content; empty without a file.
        kind: Key of `PROCESSORS`, which fills the gaps.

    Returns:
        Mean and deviation as `vit`'s arguments, how images are resized, and where these are from.

    Raises:
        ValueError: If pixels are not divided by 255.
    """
    if not processor.get("do_rescale", True) or abs(processor.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-6:
        raise ValueError(
            "preprocessor_config.json must divide pixels by 255, as all published models do. Received: "
            f"do_rescale={processor.get('do_rescale')}, rescale_factor={processor.get('rescale_factor')}"
        )
    default = PROCESSORS[kind]
    name = str(processor.get("image_processor_type", kind))
    resizes_only = "image_processor_type" in processor and name.startswith(NOT_CROPPING)
    stated = default | ({"do_center_crop": False} if resizes_only else {}) | processor
    normalised = stated.get("do_normalize", True)
    arguments = {"mean": stated["image_mean"], "std": stated["image_std"]} if normalised else {"mean": 0.0, "std": 1.0}
    size, cropped = stated["size"] or {}, stated["crop_size"] or {}
    if isinstance(size, int):
        size = {"shortest_edge" if name.startswith(SHORTEST_EDGE) else "height": size}
    edge = size.get("shortest_edge", size.get("height", 256))
    cropped = cropped if isinstance(cropped, int) else cropped.get("height", 224)
    by_edge = "crop" if "shortest_edge" in size or not size else "squash"
    evaluation = {
        "resize": by_edge if stated["do_center_crop"] else "direct",
        "crop_pct": cropped / edge if stated["do_center_crop"] else None,
        "interpolation": INTERPOLATIONS.get(stated["resample"], stated["resample"]),
        "antialias": True,
    }
    source = PROCESSOR if processor else DEFAULT
    return arguments, evaluation, {"mean": source, "evaluation": source}


def write_model(architecture, kind, arguments):
    """Returns the content of `config.json`."""
    names = arguments.get("labels") or [f"LABEL_{i}" for i in range(arguments["num_classes"])]
    labels = {str(i): name for i, name in enumerate(names)}
    return {
        "architectures": [architecture],
        "model_type": kind,
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


def write_processor(kind, arguments):
    """Returns the content of `preprocessor_config.json`."""
    evaluation, (height, width) = arguments["evaluation"], arguments["image_size"]
    size, rule = {"height": height, "width": width}, evaluation.get("resize")
    cropping = rule in ("crop", "squash")
    larger = {name: int(side / evaluation["crop_pct"] + 1e-6) for name, side in size.items()} if cropping else size
    if cropping and not (rule == "crop" and kind in SHORTEST_EDGE):
        kind = {"crop": "CLIP", "squash": "DeiT"}[rule]  # whose processors take such sizes, and crop
    return {
        "image_processor_type": f"{kind}ImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": min(larger.values())} if rule == "crop" else larger,
        "do_center_crop": cropping,
        "crop_size": size,
        "resample": next((k for k, name in INTERPOLATIONS.items() if name == evaluation.get("interpolation")), 2),
        "do_rescale": True,
        "do_normalize": True,
        "image_mean": channels_of(arguments, "mean"),
        "image_std": channels_of(arguments, "std"),
    }


def _one(pair):
    return pair[0] if pair[0] == pair[1] else list(pair)
