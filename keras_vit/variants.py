"""The published sizes: one row a model."""

import re
from typing import NamedTuple

from keras_vit import checks


class Variant(NamedTuple):
    """A size of encoder."""

    width: int
    depth: int
    mlp_dim: int
    num_heads: int
    source: str


class Hybrid(NamedTuple):
    """A convolutional stem under an encoder."""

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
}  # fmt: skip

HYBRIDS = {
    #                    stages    patch on the map, stride in pixels
    "R+Ti/16":  Hybrid((),           8, 32, "Ti", "Steiner et al. 2021 (arXiv:2106.10270), table 2"),
    "R26+S/32": Hybrid((2, 2, 2, 2), 1, 32, "S", "Steiner et al. 2021 (arXiv:2106.10270), table 2"),
    "R26+B/32": Hybrid((2, 2, 2, 2), 1, 32, "B", "vit_jax, configs/models.py"),
    "R50+B/16": Hybrid((3, 4, 9),    1, 16, "B", "Dosovitskiy et al. 2021 (arXiv:2010.11929), section 4.1"),
    "R50+L/32": Hybrid((3, 4, 6, 3), 1, 32, "L", "Steiner et al. 2021 (arXiv:2106.10270), table 2"),
}  # fmt: skip

PATCH_SIZES = {"mu": (2, 4, 16), "So400m": (14, 16), "H": (14,), "g": (14,), "G": (14,)}  # published ones
NAMES = [f"{row}/{patch}" for row in VARIANTS for patch in PATCH_SIZES.get(row, (8, 16, 32))] + list(HYBRIDS)
SIZES = Variant._fields[:-1]
MAX_BLOCKS = 1000  # a file, or a slip of the hand, may ask for any number
CUSTOM = Variant(None, None, None, None, "custom")


def parse(name):
    """Reads a name such as "B/16", "B" or "R50+L/32".

    Returns:
        The `Variant`, the number after the slash or `None`, and the `Hybrid` or `None`.

    Raises:
        ValueError: For an unknown name, with those spelled like it.
    """
    if name is None:
        return CUSTOM, None, None
    if not isinstance(name, str):
        raise unknown(name)
    if name in HYBRIDS:
        return VARIANTS[HYBRIDS[name].encoder], None, HYBRIDS[name]
    match = re.fullmatch(r"(\w+)(?:/([1-9]\d*))?", str(name))
    if not match or match[1] not in VARIANTS:
        raise unknown(name)
    return VARIANTS[match[1]], match[2] and int(match[2]), None


def unknown(name):
    """Returns the error for a name that says no size, or no patch size; another library's is translated."""
    return ValueError(
        f"A variant is a size and a patch size, such as 'B/16'. Received: {name!r}. "
        f"{_translated(str(name)) or checks.near(name, NAMES)}"
    )


ELSEWHERE = {
    "tiny": "Ti", "ti": "Ti", "small": "S", "s": "S", "medium": "M", "base": "B", "b": "B", "large": "L", "l": "L",
    "so400m": "So400m", "huge": "H", "h": "H", "giant": "g", "gigantic": "G",
}  # fmt: skip


def _translated(name):
    """Says what a name of timm, transformers or torchvision is here; an empty text if it is none."""
    owner, _, short = name.rpartition("/") if "patch" in name else ("", "", name)
    match = re.search(rf"(?:vit|deit3?)[-_]?({'|'.join(ELSEWHERE)})[-_/]?(?:patch)?(\d+)", short.lower())
    if not match:
        return ""
    variant = f"Here it is {ELSEWHERE[match[1]] + '/' + match[2]!r}"
    if "patch" not in name:
        return f"{variant}."
    owner = owner or ("google" if "-" in short else "timm")
    return f"{variant}; with the weights of that name, keras_vit.from_checkpoint('hf://{owner}/{short}')."
