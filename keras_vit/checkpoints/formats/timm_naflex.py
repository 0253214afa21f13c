"""Names in the state dicts of timm's NaFlexViT, for images of one size: SigLIP 2, and plain ViTs.

The originals take images of any aspect, as patches with a mask. Where all patches of a batch are of images of one
size, no mask is needed, and they are plain ViTs: Tschannen et al. 2025 (arXiv:2502.14786), section 2.4.
"""

import math

from keras_vit.checkpoints.formats import timm, timm_architecture
from keras_vit.checkpoints.inputs import POSITION, PROJECTION
from keras_vit.checkpoints.tables import Row, each, need
from keras_vit.models.options import merged

CHANNELS = 3
# A patch's values are in the order row, column, channel.
FLAT_PATCHES = each(
    lambda a, heads: a.T.reshape(*flat_patch(a.shape), len(a)), lambda a, heads: a.reshape(-1, a.shape[3]).T
)
GRID = each(lambda a, heads: a.reshape(1, -1, a.shape[3]), lambda a, heads: a[:, None])
PARTS = (Row(PROJECTION, "embeds.proj.weight", FLAT_PATCHES), Row(POSITION, "embeds.pos_embed", GRID))
ALIASES = ((r"^embeds\.proj\.bias$", "patch_embed.proj.bias"), (r"^embeds\.(cls|reg)_token$", r"\1_token"))


def detect(names):
    return "embeds.proj.weight" in names


def architecture(shapes, checkpoint):
    width, values = need(shapes, "embeds.proj.weight", 2)
    _, rows, columns, _ = need(shapes, "embeds.pos_embed", 4)
    side, _, _ = patch = flat_patch((width, values))
    if not (checkpoint.config.get("architecture") or checkpoint.notes or "attn_pool.latent" in shapes):
        raise ValueError(
            "A NaFlexViT without attention pooling cannot be loaded without timm's config.json next to it: the file "
            f"does not show how its positions are resized. Received: {str(checkpoint.path)!r}"
        )
    plain = {"patch_embed.proj.weight": (width, *patch[::-1]), "pos_embed": (1, rows * columns, width)}
    arguments, evaluation, origins = timm_architecture.architecture(shapes | plain, checkpoint)
    more = {"image_size": (rows * side, columns * side), "tokens": {"class_position": False}}
    if arguments["pooling"] == "map":
        more["block"], origins["block.gelu"] = {"gelu": "tanh"}, "timm's rule for NaFlexViT with attention pooling"
    return merged(arguments, more), evaluation, origins


def flat_patch(shape):
    """Returns `(side, side, channels)` of a patch, by the projection's shape."""
    side = math.isqrt(shape[1] // CHANNELS)
    if side * side * CHANNELS != shape[1]:
        raise ValueError(f"NaFlexViT's patches must be squares of {CHANNELS} channels. Received: {shape[1]} values")
    return side, side, CHANNELS


FORMAT = timm.FORMAT._replace(
    name="timm-naflex",
    rows=(*PARTS, *(row for row in timm.ROWS if row.ours not in (PROJECTION, POSITION))),
    detect=lambda names: detect(names) and "attn_pool.latent" not in names,
    aliases=ALIASES,
    canonical=None,
    architecture=architecture,
    express=None,
)
WITH_ATTENTION_POOLING = FORMAT._replace(
    detect=lambda names: detect(names) and "attn_pool.latent" in names, resample="bilinear-antialias"
)
