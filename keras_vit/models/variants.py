"""The published sizes: one row a model."""

import re
from typing import NamedTuple

from keras_vit.utils import checks


class Variant(NamedTuple):
    """Sizes of a Transformer encoder."""

    width: int
    depth: int
    mlp_dim: int
    num_heads: int
    source: str


class Hybrid(NamedTuple):
    """A ResNet stem and the encoder that follows it."""

    stages: tuple
    patch_size: int
    stride: int
    encoder: str
    source: str


VARIANTS = {
    #                  width depth mlp_dim heads
    "mu":     Variant(    32,    1,    128,    2, "big_vision, models/vit.py"),
    "Ti":     Variant(   192,   12,    768,    3, "Touvron et al. 2021 (arXiv:2012.12877), table 1"),
    "S":      Variant(   384,   12,   1536,    6, "Touvron et al. 2021 (arXiv:2012.12877), table 1"),
    "M":      Variant(   512,   12,   2048,    8, "Touvron et al. 2022 (arXiv:2204.07118), table 2"),
    "B":      Variant(   768,   12,   3072,   12, "Dosovitskiy et al. 2021 (arXiv:2010.11929), table 1"),
    "L":      Variant(  1024,   24,   4096,   16, "Dosovitskiy et al. 2021 (arXiv:2010.11929), table 1"),
    "So400m": Variant(  1152,   27,   4304,   16, "Alabdulmohsin et al. 2023 (arXiv:2305.13035), table 1"),
    "H":      Variant(  1280,   32,   5120,   16, "Dosovitskiy et al. 2021 (arXiv:2010.11929), table 1"),
    "g":      Variant(  1408,   40,   6144,   16, "Zhai et al. 2022 (arXiv:2106.04560), table 2"),
    "G":      Variant(  1664,   48,   8192,   16, "Zhai et al. 2022 (arXiv:2106.04560), table 2"),
    "22B":    Variant(  6144,   48,  24576,   48, "Dehghani et al. 2023 (arXiv:2302.05442), table 1"),
}  # fmt: skip

HYBRIDS = {
    #                    stages    patch size on the feature map, stride in pixels
    "R+Ti/16":  Hybrid((),           8, 32, "Ti", "Steiner et al. 2021 (arXiv:2106.10270), table 2"),
    "R26+S/32": Hybrid((2, 2, 2, 2), 1, 32, "S", "Steiner et al. 2021 (arXiv:2106.10270), table 2"),
    "R26+B/32": Hybrid((2, 2, 2, 2), 1, 32, "B", "vit_jax, configs/models.py"),
    "R50+B/16": Hybrid((3, 4, 9),    1, 16, "B", "Dosovitskiy et al. 2021 (arXiv:2010.11929), section 4.1"),
    "R50+L/32": Hybrid((3, 4, 6, 3), 1, 32, "L", "Steiner et al. 2021 (arXiv:2106.10270), table 2"),
}  # fmt: skip

PATCH_SIZES = {"mu": (2, 4, 16), "So400m": (14, 16), **dict.fromkeys(("H", "g", "G", "22B"), (14,))}  # published ones
NAMES = [f"{row}/{patch}" for row in VARIANTS for patch in PATCH_SIZES.get(row, (8, 16, 32))] + list(HYBRIDS)
SIZES = Variant._fields[:-1]
MAX_BLOCKS = 1000  # refuses a mistyped depth, and a damaged checkpoint's
CUSTOM = Variant(None, None, None, None, "custom")


class Sizes(NamedTuple):
    """Sizes of a model: those of a variant, unless the caller overrides them."""

    width: int
    depth: int
    mlp_dim: int
    num_heads: int
    patch_size: int | tuple[int, int] | None  # on the feature map; `None` follows from `stride`
    stride: int | None  # of the patches, in pixels of the image
    stages: tuple | None  # of the variant's `ResNetStem`
    name: str


def sizes_of(variant, patch_size=None, **overrides):
    """Combines a variant with the sizes that override it.

    Args:
        variant: As in `parse`.
        patch_size: Positive integer or `(height, width)`, or `None` for the variant's.
        **overrides: `width`, `depth`, `mlp_dim` and `num_heads`, or `None` for the variant's.

    Returns:
        `Sizes`.

    Raises:
        ValueError: For an unknown variant, or a size that is missing or not a positive integer.
    """
    encoder, stride, hybrid = parse(variant)
    name = (variant or "custom").replace("+", "_").replace("/", "_")
    if patch_size is not None:
        sides = checks.pair("patch_size", patch_size)
        name = f"{name.partition('_')[0]}_{'x'.join(map(str, dict.fromkeys(sides)))}"
    elif hybrid:
        patch_size = hybrid.patch_size
    elif variant is None:
        raise ValueError("Without a variant, `patch_size` must be given. Received: patch_size=None")
    elif stride is None:
        raise unknown(variant)
    sizes = {size: getattr(encoder, size) if overrides[size] is None else overrides[size] for size in SIZES}
    checks.positive(width=sizes["width"])
    if sizes["mlp_dim"] is None:
        sizes["mlp_dim"] = 4 * sizes["width"]
    checks.positive(**sizes)
    if sizes["depth"] > MAX_BLOCKS:
        raise ValueError(f"`depth` must be at most {MAX_BLOCKS}. Received: depth={sizes['depth']}")
    return Sizes(**sizes, patch_size=patch_size, stride=stride, stages=hybrid and hybrid.stages, name=f"vit_{name}")


def parse(name):
    """Reads a name such as "B/16", "B" or "R50+L/32".

    Returns:
        The `Variant`, the patch size or `None`, and the `Hybrid` or `None`.

    Raises:
        ValueError: For an unknown name. The message suggests similar ones.
    """
    if name is None:
        return CUSTOM, None, None
    if not isinstance(name, str):
        raise unknown(name)
    if name in HYBRIDS:
        return VARIANTS[HYBRIDS[name].encoder], None, HYBRIDS[name]
    match = re.fullmatch(r"(\w+)(?:/([1-9]\d*))?", name)
    if not match or match[1] not in VARIANTS:
        raise unknown(name)
    return VARIANTS[match[1]], match[2] and int(match[2]), None


def unknown(name):
    """Returns the error for a name without a known size or a patch size. Names of other libraries are translated."""
    return ValueError(
        "`variant` must be a size and a patch size, such as 'B/16'. "
        f"Received: {checks.shown(name)}. {_translated(str(name)) or checks.near(name, NAMES)}"
    )


ELSEWHERE = {
    "tiny": "Ti", "ti": "Ti", "small": "S", "s": "S", "medium": "M", "base": "B", "b": "B", "large": "L", "l": "L",
    "so400m": "So400m", "huge": "H", "h": "H", "giant": "g", "gigantic": "G",
}  # fmt: skip


def _translated(name):
    """Returns a sentence with the variant that timm, transformers or torchvision calls `name`, or an empty string."""
    owner, _, short = name.rpartition("/") if "patch" in name else ("", "", name)
    match = re.search(rf"(?:vit|deit3?)[-_]?({'|'.join(ELSEWHERE)})[-_/]?(?:patch)?(\d+)", short.lower())
    if not match:
        return ""
    variant = f"keras_vit calls it {ELSEWHERE[match[1]] + '/' + match[2]!r}."
    if "patch" not in name:
        return variant
    owner = owner or ("google" if "-" in short else "timm")
    return f"{variant} Load its weights with keras_vit.from_checkpoint('hf://{owner}/{short}')."
