"""Reads the arguments of `vit` off a model's layers."""

import keras
import numpy as np

from keras_vit.layers import PatchEncoder, Patches, Rescale, TokenPool, TransformerBlock
from keras_vit.layers.attention.rotary import rotary_argument

RESCALE = (Rescale, keras.layers.Rescaling)  # the second in the oldest files of this package


def arguments_of(model):
    """Returns the arguments of `keras_vit.vit` that build a model like this one.

    Args:
        model: A model from `keras_vit.vit`, or one with the same layers under the same names.

    Returns:
        A dictionary; `stem` is the stem layer itself, or `None`.

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
            f"`model` must be a model from `keras_vit.vit`. Received: {getattr(model, 'name', model)!r}, which lacks "
            f"{', '.join(missing)}"
        )
    encoder, block, rescale, names = layers["encoder"], blocks[0], layers["rescale"], list(layers)
    final = None
    if "norm" in layers:
        final = "before" if names.index("norm") < names.index("pool") else "after"
    return {
        "image_size": tuple(model.input_shape[1:3]),
        "channels": model.input_shape[3],
        "num_classes": _classes(model, layers.get("head")),
        "pooling": layers["pool"].pooling,
        "attention_pool": _attention_pool(layers["pool"], block),
        "class_token": encoder.class_token,
        "distilled": encoder.distillation_token,
        "registers": encoder.registers,
        "position": encoder.position if block.relative is None else "relative",
        "class_position": encoder.class_position,
        "block_positions": "position_1" in layers,
        "representation_size": layers["pre_logits"].units if "pre_logits" in layers else None,
        "layer_scale": block.layer_scale,
        "rotary": rotary_argument(block.rotary),
        "qkv_bias": block.qkv_bias,
        "key_bias": block.key_bias or not block.qkv_bias,
        "proj_bias": block.proj_bias,
        "qk_norm": block.qk_norm,
        "gelu": block.gelu,
        "swiglu": block.swiglu,
        "sub_norm": block.sub_norm,
        "branch_norm": block.branch_norm,
        "rms_norm": block.rms_norm,
        "epsilon": block.epsilon,
        "patch_norm": encoder.patch_norm,
        "pre_norm": "norm_pre" in layers,
        "final_norm": final,
        **_statistics(rescale),
        "stem": layers.get("stem"),
        "width": encoder.width,
        "depth": len(blocks),
        "mlp_dim": block.mlp_dim,
        "num_heads": block.num_heads,
        "patch_size": layers["patches"].patch_size,
    }


def _attention_pool(pool, block):
    """Returns the options of attention pooling that differ from the blocks', or `None`."""
    if pool.pooling != "map":
        return None
    usual = {"num_heads": block.num_heads, "mlp_dim": block.mlp_dim, "over_prefix": False}
    return {name: getattr(pool, name) for name in usual if getattr(pool, name) != usual[name]} or None


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
