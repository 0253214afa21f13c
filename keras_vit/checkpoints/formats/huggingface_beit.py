"""Names in Hugging Face transformers' files of BEiT: an encoder with relative positions, with or without classifier."""

import re

from keras_vit.checkpoints.formats import transformers_config
from keras_vit.checkpoints.formats.huggingface import ALIASES, BLOCK, DEFAULTS, EMBEDDINGS, QKV, STATED
from keras_vit.checkpoints.formats.huggingface import ROWS as VIT_ROWS
from keras_vit.checkpoints.tables import (
    SAME,
    Format,
    Row,
    blocks,
    classes_of,
    joined,
    need,
    renamed,
    shared,
    square_of,
    torch_norm,
)
from keras_vit.models.options import merged

KINDS = ("beit", "data2vec-vision")
SHARED = "encoder.relative_position_bias.relative_position_bias_table"
TABLE = f"{BLOCK}.attention.attention.relative_position_bias.relative_position_bias_table"
ROWS = (
    *(row for row in VIT_ROWS if row.ours[:5] != "norm/"),
    Row("block_{i}/attention/qv_bias", tuple(f"{part}.bias" for part in QKV[::2]), joined(SAME, 2)),
    Row("block_{i}/attention/distances/table", TABLE, SAME),
    Row("block_{i}/scale1/gamma", f"{BLOCK}.lambda_1", SAME),
    Row("block_{i}/scale2/gamma", f"{BLOCK}.lambda_2", SAME),
    *torch_norm("norm", "{norm}"),
)


BLOCKS = re.compile(r"encoder\.layer\.(\d+)\.")


def detect(names):
    return any(name.endswith("encoder.layer.0.lambda_1") for name in names)


def canonical(shapes):
    names = renamed(shapes, ((r"^(beit|data2vec_vision)\.", ""), *ALIASES))
    return shared(names, SHARED, TABLE, blocks(names, BLOCKS) if SHARED in names else 0)


def architecture(shapes, checkpoint):
    width, channels, *patch_size = need(shapes, EMBEDDINGS[0].theirs, 4)
    defaults = {None: DEFAULTS[None], **dict.fromkeys(KINDS, STATED)}
    config_arguments, origins = transformers_config.read_model(checkpoint.config, width, defaults)
    statistics, evaluation, prepared = transformers_config.read_processor(checkpoint.processor, "BEiT")
    relative, absolute = TABLE.format(i=0) in shapes, "embeddings.position_embeddings" in shapes
    if relative and absolute:
        raise ValueError("BEiT must have relative or absolute positions. Received: both")
    distances, heads = need(shapes, TABLE.format(i=0), 2) if relative else (0, None)
    grid = square_of(distances - 3)
    of_mean = "pooler.layernorm.weight" in shapes
    arguments = {
        "patch_size": tuple(patch_size),
        "channels": channels,
        "width": width,
        "depth": blocks(shapes, BLOCKS),
        "mlp_dim": need(shapes, f"{BLOCK.format(i=0)}.intermediate.dense.weight", 2)[0],
        "block": {"qkv_bias": f"{QKV[0].format(i=0)}.bias" in shapes, "key_bias": False, "layer_scale": 0.1},
        "tokens": {"class_token": True},
        "position": "relative" if relative else "learned" if absolute else None,
        "pooling": "gap" if of_mean else "token",
        "final_norm": "after" if of_mean else "before" if "layernorm.weight" in shapes else None,
        "num_classes": classes_of(shapes, "classifier"),
        **({"image_size": tuple(side * step for side, step in zip(grid, patch_size))} if grid else {}),
    }
    arguments = merged(arguments, config_arguments, statistics, {"num_heads": heads} if relative else {})
    return arguments, evaluation, origins | prepared | ({"num_heads": "the relative positions"} if relative else {})


FORMAT = Format(
    name="huggingface-beit",
    rows=ROWS,
    detect=detect,
    canonical=canonical,
    architecture=architecture,
    placeholders=lambda arguments: {
        "head": "classifier",
        "norm": "pooler.layernorm" if arguments["final_norm"] == "after" else "layernorm",
    },
    ignored=r"embeddings\.mask_token|lm_head\..*|.*\.relative_position_index",
    head_names=r"classifier\..*",
    resample_distances="bilinear",
)
