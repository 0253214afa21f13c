"""Reads and writes Hugging Face transformers' `config.json` and `preprocessor_config.json`."""

import re

from keras_vit.checkpoints.heads import problem_of
from keras_vit.checkpoints.tables import CLIP, HALF, IMAGENET, Otherwise, channels_of, published_heads
from keras_vit.preparing.evaluation_rule import before_crop

GELUS = {"gelu": "exact", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh", "gelu_fast": "tanh", "quick_gelu": "quick"}
INTERPOLATIONS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}  # Pillow's numbers
CONFIG, PROCESSOR, NESTED = "config.json", "preprocessor_config.json", "processor_config.json"
DEFAULT = "transformers' default"


def _processor(statistics, resample, size=None, crop=None):
    """Returns what a processor does by default: it resizes to 224 x 224 pixels, or to `size`, and crops then."""
    return {
        "image_mean": statistics["mean"],
        "image_std": statistics["std"],
        "resample": resample,
        "size": size or {"height": 224, "width": 224},
        "default_to_square": not size or "height" in size,
        "do_center_crop": crop is not None,
        "crop_size": crop,
    }


SQUARE, EDGE = {"height": 256, "width": 256}, {"shortest_edge": 224}
PUBLISHED = {  # without a file: what the published models' says
    "ViT": _processor(HALF, 2),
    "MAE": _processor(IMAGENET, 2),
    "DeiT": _processor(IMAGENET, 3, SQUARE, 224),
    "BEiT": _processor(HALF, 3),
    "YOLOS": _processor(IMAGENET, 2),
    "DINOv2": _processor(IMAGENET, 3, {"shortest_edge": 256}, 224),
    "DINOv3": _processor(IMAGENET, 2),
    "CLIP": _processor(CLIP, 3, EDGE, 224),
    "SigLIP": _processor(HALF, 3),
    "ViLT": _processor(HALF, 3),
    "VideoMAE": _processor(IMAGENET, 2, EDGE, 224),
    "ViViT": _processor(HALF, 2, {"shortest_edge": 256}, 224),
    "BLIP": _processor(CLIP, 3, {"height": 384, "width": 384}),
    "DPT": _processor(HALF, 3, {"height": 384, "width": 384}),
    "Depth Anything": _processor(IMAGENET, 3, {"height": 518, "width": 518})
    | {"keep_aspect_ratio": True, "ensure_multiple_of": 14},
    "ViTPose": _processor(IMAGENET, 2, {"height": 256, "width": 192}),
    "RF-DETR": _processor(IMAGENET, 2, {"height": 560, "width": 560}),
    "CLIPSeg": _processor(IMAGENET, 2, {"height": 352, "width": 352}),
    "OWL-ViT": _processor(CLIP, 3, {"height": 768, "width": 768}),
    "OWLv2": _processor(CLIP, 2, {"height": 960, "width": 960}) | {"do_pad": True},
}
# Classes of transformers that only resize, crop and normalize, with what they do where their file says nothing.
CLASSES = {
    "ViT": _processor(HALF, 2),
    "Beit": _processor(HALF, 3),
    "Blip": _processor(CLIP, 3, {"height": 384, "width": 384}),
    "Bit": _processor(CLIP, 3, EDGE, 224),
    "CLIP": _processor(CLIP, 3, EDGE, 224),
    "ChineseCLIP": _processor(CLIP, 3, EDGE, 224),
    "DeiT": _processor(HALF, 3, SQUARE, 224),
    "DINOv3ViT": _processor(IMAGENET, 2),
    "DPT": _processor(HALF, 3, {"height": 384, "width": 384}),
    "Flava": _processor(CLIP, 3, None, 224),
    "OwlViT": _processor(CLIP, 3, {"height": 768, "width": 768}),
    "Owlv2": _processor(CLIP, 2, {"height": 960, "width": 960}) | {"do_pad": True},
    "Siglip": _processor(HALF, 3) | {"default_to_square": False},
    "VideoMAE": _processor(IMAGENET, 2, EDGE, {"height": 224, "width": 224}),
    "Vivit": _processor(HALF, 2, {"shortest_edge": 256}, {"height": 224, "width": 224}),
    "RfDetr": _processor(IMAGENET, 2, {"height": 560, "width": 560}),
    "Siglip2": _processor(HALF, 2),
    "Vilt": _processor(HALF, 3, {"shortest_edge": 384}),
    "VitPose": _processor(IMAGENET, 2, {"height": 256, "width": 192}),
    "Yolos": _processor(IMAGENET, 2),
}
PROCESSOR_KINDS = {
    "MAE": "ViT", "BEiT": "Beit", "YOLOS": "Yolos", "DINOv2": "Bit", "DINOv3": "DINOv3ViT", "SigLIP": "Siglip",
    "ViLT": "Vilt",
}  # fmt: skip
PROCESSOR_KINDS |= {"BLIP": "Blip", "ViViT": "Vivit", "Depth Anything": "DPT", "ViTPose": "VitPose"}
PROCESSOR_KINDS |= {"OWL-ViT": "OwlViT", "OWLv2": "Owlv2"}
PROCESSOR_KINDS |= {"RF-DETR": "RfDetr", "CLIPSeg": "ViT"}
SHORTEST_EDGE = ("CLIP", "Bit")  # classes that resize the shorter side, and crop, in all versions
ANY_ASPECT = ("Siglip2", "Vilt", "Yolos")  # classes whose images have no one size
# Options that `read_processor` reads or that change no pixel of a model's image. Others must be off.
OPTIONS = re.compile(
    "crop_size|default_to_square|do_(center_crop|convert_rgb|normalize|reduce_labels|rescale|resize)|image_(mean|std)"
    "|resample|rescale_factor|reduce_labels|size"
    "|(image_processor|feature_extractor)_type|_?processor_class|_valid_processor_keys|model_input_names|use_fast|backend"
    "|data_format|input_data_format|return_tensors|device|disable_grouping|image_seq_length"
    "|(codebook|mask_group|return|total_mask)_[a-z_]+|input_size_patches"  # of a masked autoencoder's targets
)
ASPECT_OPTIONS = re.compile(
    "do_pad|pad_size|max_size|format|do_convert_annotations|patch_size|max_num_patches|keep_aspect_ratio"
    "|ensure_multiple_of|size_divisor"
)


def part_of(config, part):
    """Returns what the `config.json` of two towers says of one, `"vision"` or `"text"`; that of one tower as it is."""
    names = (f"{part}_config", f"{part}_config_dict")  # the second wins
    if not set(names) & set(config):
        return config
    first, second = (config.get(name) or {} for name in names)
    return {"model_type": config["model_type"], **first, **second}


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
    options = defaults[kind] | config
    if options["hidden_act"] not in GELUS:
        raise ValueError(f"`hidden_act` must be one of {', '.join(GELUS)}. Received: {options['hidden_act']!r}")
    names = {"num_heads": "num_attention_heads", "block.gelu": "hidden_act", "norm.epsilon": "layer_norm_eps"}
    origins = {ours: CONFIG if theirs in config else DEFAULT for ours, theirs in names.items()}
    arguments = {
        "num_heads": options.get("num_attention_heads"),
        "block": {"gelu": GELUS[options["hidden_act"]]},
        "norm": {"epsilon": options["layer_norm_eps"]},
    }
    if arguments["num_heads"] is None:
        arguments["num_heads"], origins["num_heads"] = published_heads(width)
    if "image_size" in options:
        size = options["image_size"]
        arguments["image_size"] = tuple(size) if isinstance(size, list) else size
    return arguments, origins


def read_processor(processor, kind):
    """Reads `preprocessor_config.json`, or the part of `processor_config.json` on images.

    Args:
        processor: Dictionary of the file's content; empty without a file.
        kind: Key of `PUBLISHED`: the model's.

    Returns:
        Mean and deviation as `vit`'s arguments, how images are resized, and where these are from.

    Raises:
        ValueError: If it prepares images in a way that `keras_vit.preprocess` does not have.
    """
    source = NESTED if "image_processor" in processor else PROCESSOR if processor else DEFAULT
    # As in transformers, null stands for the class's default.
    entries = {name: value for name, value in processor.get("image_processor", processor).items() if value is not None}
    named = entries.get("image_processor_type", entries.get("feature_extractor_type", PROCESSOR_KINDS.get(kind, kind)))
    name = re.sub("(ImageProcessor|FeatureExtractor)(Fast|Pil)?$", "", str(named))
    if name not in CLASSES:
        raise ValueError(f"The image processor of {source} must be one of {', '.join(CLASSES)}. Received: {named!r}")
    options = (CLASSES[name] if processor else PUBLISHED[kind]) | entries
    if not options.get("do_rescale", True) or abs(options.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-6:
        raise ValueError(
            f"{source} must divide pixels by 255, as all published models do. Received: "
            f"do_rescale={options.get('do_rescale')}, rescale_factor={options.get('rescale_factor')}"
        )
    any_aspect = bool(processor) and (name in ANY_ASPECT or options.get("keep_aspect_ratio"))
    patterns = [OPTIONS, ASPECT_OPTIONS] if any_aspect else [OPTIONS]
    if name == "Owlv2":
        entries.pop("do_pad", None)
    if name == "DPT" and options["size"] == _rounded(options["size"], options.get("ensure_multiple_of", 1)):
        entries.pop("ensure_multiple_of", None)
    other = [f"{k}={v!r}" for k, v in entries.items() if v and not any(pattern.fullmatch(k) for pattern in patterns)]
    resized = {"resize": "direct", "crop_pct": None} if any_aspect else _resized(options)
    if name == "Owlv2" and resized is not None:
        resized = {**resized, "resize": "pad"} if options["do_pad"] else None
    if other or resized is None or not options.get("do_resize", True):
        names = ("do_resize", "size", "do_center_crop", "crop_size")
        other = other or [f"{name}={options[name]!r}" for name in names if name in options]
        raise ValueError(f"`preprocess` cannot do what {source} asks for, {', '.join(other)}: images would differ.")
    normalized = options.get("do_normalize", True)
    arguments = (
        {"mean": options["image_mean"], "std": options["image_std"]} if normalized else {"mean": 0.0, "std": 1.0}
    )
    evaluation = {
        **resized,
        "crop_offset": "floor",
        "interpolation": INTERPOLATIONS.get(options["resample"], options["resample"]),
        "antialias": True,
    }
    remark = f"transformers keeps the aspect ratio of an image ({source}), and `preprocess` resizes it to one size."
    if (name == "DPT" or not processor) and options.get("keep_aspect_ratio") and not options.get("do_pad"):
        evaluation["aspect"] = {"multiple": options.get("ensure_multiple_of", 1)}
    return arguments, evaluation, {"mean": source, "evaluation": Otherwise(remark) if any_aspect else source}


def _rounded(size, step):
    """Returns a size by `height` and `width`, both rounded to multiples; another kind of size as it is."""
    return {k: round(side / step) * step for k, side in size.items()} if isinstance(size, dict) else size


def _resized(options):
    """Returns how a processor resizes and crops, as entries of a rule; `None` if no rule does."""
    size, crop = (
        {"height": value[0], "width": value[-1]} if isinstance(value, (list, tuple)) else value
        for value in (options["size"], options["crop_size"])
    )
    if isinstance(size, int):
        size = {"height": size, "width": size} if options["default_to_square"] else {"shortest_edge": size}
    if not options["do_center_crop"]:
        return {"resize": "direct", "crop_pct": None} if set(size) == {"height", "width"} else None
    crop = {"height": crop, "width": crop} if isinstance(crop, int) else crop or {}
    if set(crop) != {"height", "width"}:
        return None
    edges, sides = ([each[name] for name in ("height", "width") if name in each] for each in (size, crop))
    if set(size) == {"shortest_edge"} and sides[0] == sides[1] <= size["shortest_edge"]:
        return {"resize": "crop", "crop_pct": sides[0] / size["shortest_edge"]}
    if set(size) != {"height", "width"} or not all(side <= edge for side, edge in zip(sides, edges)):
        return None  # smaller images get a black border
    shares = [side / edge for side, edge in zip(sides, edges)]
    return {"resize": "squash", "crop_pct": shares[0] if shares[0] == shares[1] else shares}


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
        "hidden_act": next(theirs for theirs, ours in GELUS.items() if ours == arguments["block"]["gelu"]),
        "layer_norm_eps": arguments["norm"]["epsilon"],
        "image_size": _one(arguments["image_size"]),
        "patch_size": _one(arguments["patch_size"]),
        "num_channels": arguments["channels"],
        "qkv_bias": arguments["block"]["qkv_bias"],
        "id2label": labels,
        "label2id": {name: int(i) for i, name in labels.items()},
        **problem_of(arguments.get("gives")),
    }


def write_processor(kind, arguments):
    """Returns the content of `preprocessor_config.json`: what comes closest to a model's rule."""
    rule, (height, width) = arguments["evaluation"], arguments["image_size"]
    size, square = {"height": height, "width": width}, height == width
    larger = before_crop((height, width), rule) if rule["resize"] in ("crop", "squash") else [height, width]
    by_edge = rule["resize"] in ("crop", "aspect") and square
    cropping = by_edge or larger != [height, width]
    if cropping and not (by_edge and kind in SHORTEST_EDGE):
        kind = "CLIP" if by_edge else "DeiT"  # whose processors take such sizes, and crop
    return {
        "image_processor_type": f"{kind}ImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": larger[0]} if by_edge else dict(zip(size, larger)),
        "do_center_crop": cropping,
        "crop_size": size,
        "resample": next((k for k, name in INTERPOLATIONS.items() if name == rule["interpolation"]), 2),
        "do_rescale": True,
        "do_normalize": True,
        "image_mean": channels_of(arguments, "mean"),
        "image_std": channels_of(arguments, "std"),
    }


def _one(pair):
    return pair[0] if pair[0] == pair[1] else list(pair)
