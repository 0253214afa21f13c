"""Names in Hugging Face transformers' files of SigLIP 2 for any aspect (NaFlex), here for images of one size."""

import math

from keras_vit.checkpoints.formats import huggingface_clip
from keras_vit.checkpoints.formats.timm_naflex import FLAT_PATCHES, flat_patch
from keras_vit.checkpoints.inputs import PROJECTION
from keras_vit.checkpoints.tables import Row, need

PATCHES = "embeddings.patch_embedding.weight"  # a matrix, and not a convolution as in the files of one size

KINDS = {"siglip2": "siglip", "siglip2_vision_model": "siglip_vision_model"}  # whose defaults they share


def detect(shapes):
    return any(name.endswith(PATCHES) and len(shape) == 2 for name, shape in shapes.items())


def architecture(shapes, checkpoint):
    patch = flat_patch(need(shapes, PATCHES, 2))
    count, _ = need(shapes, "embeddings.position_embedding.weight", 2)
    plain = {PATCHES: (shapes[PATCHES][0], *patch[::-1])}
    config = _of_siglip(checkpoint.config)
    config |= {"vision_config": _of_siglip(config["vision_config"])} if "vision_config" in config else {}
    arguments, evaluation, origins = huggingface_clip.architecture(shapes | plain, checkpoint._replace(config=config))
    return arguments | {"image_size": math.isqrt(count) * patch[0]}, evaluation, origins


def _of_siglip(config):
    """Returns a configuration with SigLIP's name for the kind of model."""
    kind = config.get("model_type")
    return config | ({"model_type": KINDS[kind]} if kind in KINDS else {})


FORMAT = huggingface_clip.FORMAT._replace(
    name="huggingface-naflex",
    rows=(Row(PROJECTION, PATCHES, FLAT_PATCHES), *(row for row in huggingface_clip.ROWS if row.ours != PROJECTION)),
    detect=detect,
    architecture=architecture,
    resample="bilinear-antialias",
    express=None,
)
