"""The rule by which evaluation prepares images for a model: its fields, and its arithmetic. See `preprocess`."""

import math

from keras_vit.utils import checks

DEFAULT = {
    "resize": "direct",
    "crop_pct": None,
    "crop_offset": "round",
    "interpolation": "bilinear",
    "antialias": False,
}
RESIZES = ("direct", "crop", "squash", "window", "aspect", "pad")
POSITIONS = ("bicubic", "bilinear")
OFFSETS = {"round": round, "floor": math.floor}  # torchvision's and timm's; transformers'


def checked(rule):
    """Returns a rule; raises ValueError if it is invalid, such as one from a damaged configuration."""
    checks.one_of("resize", rule["resize"], RESIZES)
    checks.one_of("crop_offset", rule["crop_offset"], tuple(OFFSETS))
    checks.one_of("interpolation", rule["interpolation"], ("bilinear", "bicubic", "area"))
    if rule["resize"] in ("crop", "squash"):
        share = rule["crop_pct"]
        pair = rule["resize"] == "squash" and isinstance(share, (list, tuple)) and len(share) == 2
        for each in share if pair else [share]:
            if isinstance(each, bool) or not isinstance(each, (int, float)) or not 0 < each <= 1:
                raise ValueError(f"`crop_pct` must be above 0 and at most 1. Received: crop_pct={checks.shown(share)}")
    checks.pair("full_size", rule["full_size"])
    aspect = rule.get("aspect")
    if aspect is not None:
        if not isinstance(aspect, dict) or aspect.get("positions", POSITIONS[0]) not in POSITIONS:
            raise ValueError(
                f"`aspect` must be a multiple, and how positions are resampled. Received: {checks.shown(aspect)}"
            )
        checks.positive(**{"aspect.multiple": aspect.get("multiple")})
    return rule


def before_crop(size, rule):
    """Returns the `[height, width]` to which `"crop"` and `"squash"` resize before they cut out `size`."""
    share = rule["crop_pct"]
    shares = share if isinstance(share, (list, tuple)) else [share] * 2
    return [math.floor(side / each + 1e-6) for side, each in zip(size, shares)]


def crop_start(shape, size, rule):
    """Returns the `[top, left]` from which the center of an image is cut."""
    halved = OFFSETS[rule["crop_offset"]]
    return [halved((have - want) / 2) for have, want in zip(shape, size)]


def keeping_aspect(shape, size, multiple=1):
    """Returns the size to which transformers' `DPTImageProcessor` with `keep_aspect_ratio` brings an image.

    Both sides are scaled by that factor, of those that reach one side of `size`, which is nearer to 1.

    Args:
        shape: `(height, width)` of the image.
        size: `(height, width)` in the processor's configuration.
        multiple: `ensure_multiple_of` there: both sides are rounded to it.

    Returns:
        `(height, width)`.
    """
    scale = min((want / have for have, want in zip(shape, size)), key=lambda each: abs(1 - each))
    return tuple(max(round(side * scale / multiple) * multiple, multiple) for side in shape)


def difference(first, second, size):
    """Returns the entries of a rule by which it prepares other images of `size` than another rule; `{}` if none."""
    mine, other = (_effective(rule, size) for rule in (first, second))
    unlike = [name for name in mine if mine[name] is not None and mine[name] != other[name]]
    return {
        name: first.get(name) for name in unlike if first.get(name) != second.get(name)
    }  # what both say is no reason


def _effective(rule, size):
    """Returns a rule without what does not change an image: the same images, the same entries."""
    kind, full, larger, cut = rule["resize"], list(rule.get("full_size") or size), None, None
    if kind in ("crop", "squash"):
        larger = before_crop(full, rule)
        rooms = [have - want for have, want in zip(larger, full)]
        kind = "direct" if kind == "squash" and not any(rooms) else kind
        # What is left of a photograph's longer side may be any number.
        cut = rule["crop_offset"] if kind == "crop" or any(round(room / 2) != room // 2 for room in rooms) else None
    return {
        "resize": kind,
        "crop_pct": None if kind == "direct" else larger,
        "crop_offset": cut,
        "interpolation": rule["interpolation"],
        "antialias": rule["antialias"] or rule["interpolation"] == "area",
        "full_size": full,
        "as_floats": bool(rule.get("as_floats")) and (rule["antialias"] or rule["interpolation"] == "bicubic"),
    }
