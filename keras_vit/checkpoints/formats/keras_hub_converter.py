"""Reads how a preset of KerasHub prepares images: its image converter."""

import math

from keras_vit.checkpoints.tables import Missing, Otherwise

# Options that are read, or that change no pixel.
OPTIONS = {
    *("image_size", "scale", "offset", "interpolation", "antialias", "crop_to_aspect_ratio", "pad_to_aspect_ratio"),
    *("bounding_box_format", "data_format", "name", "trainable", "dtype"),
}
EXACT = (None, "float32")  # policies by which pixels are float32: those of mixed precision compute in the smaller type
UNSAID = Missing(
    "Nothing in the preset says how pixels were prepared: pass mean and std, such as mean=0.0, std=1.0 if they were "
    "divided by 255, mean=0.0, std=1/255 if they went in as they are."
)


def read_converter(converter, file, size):
    """Reads the options of an image converter.

    Args:
        converter: A dictionary; `None` if the preset has none.
        file: Name of the file that has them.
        size: `(height, width)` of the images that the model takes.

    Returns:
        Mean and deviation as `vit`'s arguments, how images are resized, and where these are from.

    Raises:
        ValueError: If it prepares images in a way that `keras_vit.preprocess` does not have.
    """
    if converter is None:
        return {}, {}, {"mean": UNSAID, "std": UNSAID}
    interpolation, resized = converter.get("interpolation", "bilinear"), converter.get("image_size")
    unknown = [f"{k}={v!r}" for k, v in converter.items() if v is not None and k not in OPTIONS]
    unknown += ["pad_to_aspect_ratio=True"] if converter.get("pad_to_aspect_ratio") else []
    unknown += [f"interpolation={interpolation!r}"] if interpolation not in ("bilinear", "bicubic") else []
    if resized is not None and tuple(resized) != tuple(size):
        unknown.append(f"image_size={resized!r} for a model of {tuple(size)}")
    if unknown:
        raise ValueError(f"`preprocess` cannot do what {file} asks for, {', '.join(unknown)}: images would differ.")
    evaluation = {
        "resize": "aspect" if converter.get("crop_to_aspect_ratio", True) else "direct",
        "crop_pct": None,
        "interpolation": interpolation,
        "antialias": bool(converter.get("antialias", False)),
        "as_floats": True,
    }
    origins = {"mean": file, "evaluation": file}
    if resized is None:
        remark = "KerasHub resizes no image for this model, and `preprocess` resizes it to the model's size."
        origins["evaluation"] = Otherwise(remark)
    if (kind := _type(converter.get("dtype"))) not in EXACT:
        origins["mean"] = Otherwise(f"KerasHub computes this model's pixels in {kind}, and `preprocess` in float32.")
    return _statistics(converter, file), evaluation, origins


def _statistics(converter, file):
    """Returns mean and deviation: `x * scale + offset` is `(x / 255 - mean) / std`."""
    scale, offset = (
        default if converter.get(name) is None else converter[name]
        for name, default in (("scale", 1.0), ("offset", 0.0))
    )
    lists = [list(each) if isinstance(each, (list, tuple)) else [each] for each in (scale, offset)]
    count = max(map(len, lists))
    numbers = all(isinstance(each, (int, float)) and math.isfinite(each) for values in lists for each in values)
    if not numbers or min(lists[0]) <= 0 or {*map(len, lists)} - {1, count}:
        raise ValueError(
            f"`scale` and `offset` in {file} must be finite numbers, one or one for each channel, and scales above 0. "
            f"Received: {scale!r} and {offset!r}"
        )
    scales, offsets = (values * (count // len(values)) for values in lists)
    std = [1 / (255 * each) for each in scales]
    mean = [-each * deviation for each, deviation in zip(offsets, std, strict=True)]
    return {"mean": mean[0], "std": std[0]} if count == 1 else {"mean": mean, "std": std}


def _type(stated):
    """Returns the name of a type as Keras serializes it."""
    return (stated.get("config") or {}).get("name") if isinstance(stated, dict) else stated
