"""Reads the arguments of `vit` or `vilt` off a model's layers."""

import re

import keras
import numpy as np

from keras_vit.layers import PatchEncoder, Patches, Rescale, TokenPool, TransformerBlock
from keras_vit.layers.attention.rotary import rotary_argument
from keras_vit.layers.blocks.norms import NORM
from keras_vit.layers.blocks.transformer_block import BLOCK
from keras_vit.layers.heads.token_pool import POOL
from keras_vit.models.backbone import input_shape_of
from keras_vit.models.map_heads import head_of
from keras_vit.utils import checks

RESCALE = (Rescale, keras.layers.Rescaling)  # the second in the oldest files of this package


def arguments_of(model, words=False):
    """Returns the arguments of `keras_vit.vit` that build a model like this one.

    Args:
        model: A model from `keras_vit.vit`, or one with the same layers under the same names.
        words: Whether one from `keras_vit.vilt` or `keras_vit.video_vit` is possible, or one with a head that returns
            maps: its arguments are there too.

    Returns:
        A dictionary; `stem` is the stem layer itself, or `None`; `maps` is what `models.map_heads.with_head` takes.

    Raises:
        ValueError: If the model lacks one of these layers.
    """
    layers = {layer.name: layer for layer in getattr(model, "layers", ())}
    blocks = [layers[f"block_{i}"] for i in range(sum(isinstance(x, TransformerBlock) for x in layers.values()))
              if f"block_{i}" in layers]  # fmt: skip
    kinds = {"rescale": RESCALE, "patches": Patches, "encoder": PatchEncoder, "block_0": TransformerBlock}
    kinds["pool"] = TokenPool
    missing = [name for name, kind in kinds.items() if not isinstance(layers.get(name), kind)]
    if missing:
        raise ValueError(
            f"`model` must be a model from `keras_vit.vit`. "
            f"Received: {checks.shown(getattr(model, 'name', model))}, which lacks {', '.join(missing)}"
        )
    if any(isinstance(layer, keras.layers.UnitNormalization) for layer in layers.values()):
        raise ValueError(
            "`model` must be a model from `keras_vit.vit`. Received: a classifier by the names of classes, whose "
            "embeddings have length 1; load its file with keras.models.load_model"
        )
    if "tubelets" in layers and not words:
        raise ValueError(
            f"`model` must be a model from `keras_vit.vit`. Received: {model.name!r}, which takes clips, as from "
            "`keras_vit.video_vit`"
        )
    if "words" in layers and not words:
        raise ValueError(
            f"`model` must be a model from `keras_vit.vit`. Received: {model.name!r}, which reads words too, as from "
            "`keras_vit.vilt`"
        )
    encoder, block, rescale, names = layers["encoder"], blocks[0], layers["rescale"], list(layers)
    shape = input_shape_of(model)
    final = None
    if "norm" in layers:
        final = "before" if names.index("norm") < names.index("pool") else "after"
    rates = ("attention_dropout",)  # of training, as `dropout` is
    return {
        "image_size": tuple(shape[-3:-1]),
        "channels": shape[-1],
        **_statistics(rescale),
        "stem": layers.get("stem"),
        "patch_size": layers["patches"].patch_size,
        "width": encoder.width,
        "depth": len(blocks),
        "num_heads": block.num_heads,
        "mlp_dim": block.mlp_dim,
        "tokens": {
            "class_token": encoder.class_token,
            "distilled": encoder.distillation_token,
            "registers": encoder.registers,
            "class_position": encoder.class_position,
            "block_positions": "position_1" in layers,
            "patch_norm": encoder.patch_norm,
            "pre_norm": "norm_pre" in layers,
            **_windows(blocks),
        },
        "position": encoder.position if block.relative is None else "relative",
        "rotary": rotary_argument(block.rotary),
        "norm": {name: getattr(block, name) for name in NORM},
        "block": {
            **{name: getattr(block, name) for name in BLOCK if name not in rates},
            "key_bias": block.key_bias or not block.qkv_bias,
        },
        "pooling": layers["pool"].pooling,
        "pool": _pool(layers["pool"], block),
        "final_norm": final,
        "representation_size": layers["pre_logits"].units if "pre_logits" in layers else None,
        "num_classes": _classes(model, layers.get("head")),
        **(_of_words(layers) if "words" in layers else {}),
        **(_of_clips(layers, block) if "tubelets" in layers else {}),
        **({"maps": maps} if words and (maps := head_of(model)) else {}),
    }


def _windows(blocks):
    """Returns the options of the windows of blocks."""
    count = next((block.windows["count"] for block in blocks if block.windows), 1)
    return {
        "windows": count,
        "whole_blocks": tuple(i for i, block in enumerate(blocks) if count > 1 and block.windows is None),
    }


def _of_clips(layers, block):
    """Returns the arguments that only `video_vit` has."""
    last = layers["norm"].epsilon if "norm" in layers else block.epsilon
    return {
        "frames": layers["tubelets"].frames,
        "tubelet": layers["tubelets"].length,
        "time_depth": sum(bool(re.fullmatch(r"time_\d+", name)) for name in layers),
        "pool_epsilon": None if last == block.epsilon else last,
    }


def _of_words(layers):
    """Returns the arguments that only `vilt` has."""
    words = layers["words"]
    return {
        "vocabulary": words.vocabulary,
        "length": words.length,
        "pad": layers["mask"].pad if "mask" in layers else None,
        "word_epsilon": layers["words_norm"].epsilon,
        "answer_dim": layers["answer"].units if "answer" in layers else 0,
    }


def _pool(pool, block):
    """Returns the options of attention pooling; `None` for the blocks' sizes."""
    if pool.pooling != "map":
        return dict(POOL)
    usual = {"num_heads": block.num_heads, "mlp_dim": block.mlp_dim, "over_prefix": None}
    return {name: POOL[name] if (own := getattr(pool, name)) == usual[name] else own for name in POOL}


def _classes(model, head):
    """Returns the number of classes of a classifier; 0 without a head, or with a head for something else."""
    of_images = isinstance(head, keras.layers.Dense) and len(model.output_shape) < 4
    return head.units if of_images else 0


def _statistics(rescale):
    """Returns the mean and the deviation of the first layer, as arguments."""
    if isinstance(rescale, Rescale):
        return {"mean": rescale.mean, "std": rescale.std, "value_range": rescale.value_range}
    std = 1 / (255 * np.asarray(rescale.scale))
    return {"mean": (-np.asarray(rescale.offset) * std).tolist(), "std": std.tolist(), "value_range": (0, 255)}
