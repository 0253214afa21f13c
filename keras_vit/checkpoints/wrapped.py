"""Files with a timm model inside another model: transformers' `TimmWrapper`, and OpenCLIP's image towers."""

from keras_vit.checkpoints.tables import CLIP

OPEN_CLIP = "open_clip_config.json"
CROPS = {"shortest": "center", "squash": "squash"}  # OpenCLIP's names and timm's
PREFIXES = ("timm_model.", "visual.trunk.")


def prefix_of(names):
    """Returns what stands before the names of a timm model in a file; `""` in a file of its own."""
    return next((prefix for prefix in PREFIXES if any(name.startswith(prefix) for name in names)), "")


def of_open_clip(config):
    """Returns the content of timm's `config.json` that OpenCLIP's configuration amounts to.

    Args:
        config: Content of `open_clip_config.json`, `{}` without one.
    """
    tower = config.get("model_cfg", {}).get("vision_cfg", {})
    if "timm_model_name" not in tower:
        return {}
    prepared, side = CLIP | config.get("preprocess_cfg", {}), tower.get("image_size", 224)
    mode = prepared.get("resize_mode", "shortest")
    if mode not in CROPS:
        raise ValueError(f"`resize_mode` must be one of {', '.join(CROPS)}. Received: {mode!r}")
    return {
        "architecture": tower["timm_model_name"],
        **({"global_pool": tower["timm_pool"]} if tower.get("timm_pool") else {}),
        "pretrained_cfg": {
            "input_size": [3, *(side if isinstance(side, list) else [side, side])],
            "crop_pct": 1.0,
            "crop_mode": CROPS[mode],
            "interpolation": prepared.get("interpolation", "bicubic"),
            "mean": prepared["mean"],
            "std": prepared["std"],
        },
    }
