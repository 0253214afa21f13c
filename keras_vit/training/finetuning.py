"""Fine-tuning: frozen blocks, linear probes and LoRA."""

import keras

from keras_vit.layers import PatchEncoder, TransformerBlock
from keras_vit.layers.base import Layer
from keras_vit.models.backbone import (
    around,
    backbone,
    fill,
    has_lora,
    has_towers,
    image_tower,
    layers_leading_to,
    merged_values,
    without_lora,
)
from keras_vit.models.open_segmenter import PARTS, is_open_segmenter
from keras_vit.models.whole_autoencoder import is_autoencoder
from keras_vit.training import devices, state
from keras_vit.utils import checks
from keras_vit.utils.keras_private import calls_of, sublayers
from keras_vit.utils.typed import typed
from keras_vit.utils.warned import warn

ENCODER = ("norm", "pool", "pool_distilled", "pre_logits")  # layers after the blocks that are not the head


@typed
def freeze(model: keras.Model, upto: int | str | None) -> keras.Model:
    """Freezes the lower layers of a model and unfreezes all others.

    Frozen batch normalization keeps its statistics too. Compile the model afterwards: Keras trains the layers that were
    trainable at that time.

    Args:
        model: A model of `keras_vit.vit`, or one with such a model nested in it. Then the layers with weights after the
            nested ViT are the head, and the layers before it are frozen with its patches. Of two towers, the image
            tower is frozen, and its head too by `"all"`: Zhai et al. 2022 (arXiv:2111.07991), LiT. Of a segmenter of
            texts, `"all"` freezes both towers and trains the decoder: CLIPSeg (arXiv:2112.10003).
        upto: `None` to train everything; the number of blocks to freeze, with everything before them (0 freezes only
            what comes before the first block); `"all"` for a linear probe, which trains the head only.

    Returns:
        The model.

    Raises:
        ValueError: For more blocks than the model has, a linear probe of a model without a head, or a model with
            LoRA, which decides itself which layers are trained.

    Example:

    >>> freeze(model, "all")  # train the head first
    >>> freeze(model, None)  # then everything
    """
    check_freeze(model, upto)
    below = [] if upto is None else _parts(model)[0] if upto == "all" else _leading(model, upto)
    for layer in sublayers(model):  # each one: Keras ignores `trainable = True` on a layer that has it already
        layer.trainable = False
        layer.trainable = True
    for layer in below:
        layer.trainable = False
    _warn_if_trained(model, "freeze")
    return model


def _warn_if_trained(model, what):
    """Warns if a model has a training step already, which moves the weights that were trainable before."""
    if getattr(model, "compiled", False) and getattr(model, "train_function", None) is not None:
        warn(
            f"{model.name!r} was trained before `{what}`: `fit` would move the same weights as then. Compile it again, "
            "model.compile(...), before the next `fit`."
        )


def check(model, optim):
    """Raises ValueError if a model cannot be trained as a `config.Optim` says."""
    if not is_autoencoder(model):  # which has no blocks; its task refuses to freeze
        check_freeze(model, optim.freeze, optim.lora)
    narrow = next((v for v in model.trainable_variables if v.dtype in ("float16", "bfloat16")), None)
    if narrow is not None and optim.freeze != "all":  # small steps round to 0
        raise ValueError(
            f"Weights in training must be float32: take model.dtype='mixed_{narrow.dtype}'. "
            f"Received: {narrow.path!r} in {narrow.dtype}"
        )


def check_freeze(model, upto, rank=None):
    """Raises ValueError where `freeze(model, upto)`, or `add_lora(model, rank)` after it, would; changes nothing."""
    depth = len(_blocks(model))
    number = isinstance(upto, int) and not isinstance(upto, bool) and 0 <= upto <= depth
    if not (upto is None or number or (isinstance(upto, str) and upto == "all")):
        raise ValueError(
            f"`upto` must be None, 'all' or a number of blocks from 0 to {depth}. Received: upto={checks.shown(upto)}"
        )
    if has_lora(model):
        raise ValueError(
            f"{model.name!r} has LoRA, which trains its own weights and the head only. Call `merge_lora` first, "
            "or `freeze` before `add_lora`."
        )
    if upto == "all" and not _parts(model)[1]:
        raise ValueError(f"A linear probe needs a head. Received: {model.name!r}, num_classes=0")
    if rank is not None and upto in ("all", depth):
        raise ValueError(f"LoRA needs a block that is not frozen. Received: freeze={checks.shown(upto)}, lora={rank}")


def add_lora(model: keras.Model, rank: int) -> keras.Model:
    """Adds LoRA to the query, key and value of every block; only LoRA and the head are trained.

    Hu et al. 2022 (arXiv:2106.09685), by Keras's `enable_lora` on the fused projection. The updates start at zero, so
    the model's predictions do not change. Frozen blocks stay frozen, their LoRA included.

    Args:
        model: As in `freeze`.
        rank: Positive integer.

    Returns:
        The model.

    Raises:
        ValueError: For a rank that is not positive, a model that has LoRA already, or one with all blocks frozen.
    """
    checks.positive(rank=rank)
    layers = [block.attention.qkv for block in _blocks(model)]
    if any(dense.lora_enabled for dense in layers):
        raise ValueError(f"{model.name!r} has LoRA already. Call `merge_lora` first.")
    if not any(dense.trainable for dense in layers):
        raise ValueError(
            f"LoRA needs a block that is not frozen; see freeze(model, None). Received: {model.name!r}, all frozen"
        )
    added, others = set(), _parts(model)[0]  # before anything changes: it may be refused
    for dense in layers:
        dense.enable_lora(rank)
        added |= {id(dense.lora_kernel_a), id(dense.lora_kernel_b)}
    for layer in others:
        if not isinstance(layer, Layer):  # a file keeps `trainable` of a layer, and of ours which weights are frozen
            layer.trainable = False
        for variable in layer.trainable_variables:
            variable.trainable = id(variable) in added
        for norm in sublayers(layer):
            if isinstance(norm, keras.layers.BatchNormalization):
                norm.trainable = False  # keeps its statistics too
    _warn_if_trained(model, "add_lora")
    return model


def merge_lora(model: keras.Model) -> keras.Model:
    """Returns a copy of a model with LoRA merged into the kernels; it computes the same.

    Args:
        model: A model with LoRA, or without; it is not changed.

    Returns:
        A model that is not compiled. Frozen layers are frozen in it too.
    """
    checks.model(model)
    return plain_copy(model, merged_arrays(model))


def merged_arrays(model):
    """Returns a model's weights as arrays, in their order, with LoRA merged into the kernels."""
    return [state.to_numpy(value) for value in merged_values(model)]


def plain_copy(model, values):
    """Returns a copy of a model with the weights from `merged_arrays`; it belongs to this process alone."""
    config, lora = model.get_config(), has_lora(model)
    with devices.apart():
        copy = fill(type(model).from_config(without_lora(config) if lora else config), values)
    if lora:
        _thaw(copy)
    return copy


def _thaw(model):
    """Makes trainable what `add_lora` froze, in a copy without LoRA: our layers have kept their `trainable`."""
    trained = [i for i, block in enumerate(_blocks(model)) if block.trainable]
    frozen = any(isinstance(layer, PatchEncoder) and not layer.trainable for layer in backbone(model).layers)
    below = _leading(model, trained[0]) if frozen else []
    for layer in _parts(model)[0]:
        if not isinstance(layer, Layer) and layer not in below:
            layer.trainable = True


def _blocks(model):
    return [layer for layer in backbone(image_tower(model)).layers if isinstance(layer, TransformerBlock)]


def _parts(model):
    """Returns the layers that a linear probe freezes, and those that it trains, the head.

    These have weights and come after a nested ViT, else after its blocks; of two towers, all but the image tower; of a
    segmenter of texts, the decoder.
    """
    if is_open_segmenter(model):
        *towers, decoder = map(model.get_layer, PARTS)
        return [layer for tower in towers for layer in tower.layers], [decoder]
    if has_towers(model):
        image = image_tower(model)
        return image.layers, [layer for layer in model.layers if layer is not image]
    (before, behind), layers = around(model), backbone(model).layers
    head = [layer for layer in behind if layer.weights]
    if not head:
        last = max(i for i, layer in enumerate(layers) if isinstance(layer, TransformerBlock))
        head = [layer for layer in layers[last + 1 :] if layer.weights and layer.name not in ENCODER]
    ids = {id(layer) for layer in head}
    return [layer for layer in [*before, *layers] if id(layer) not in ids], head


def _leading(model, upto):
    """Returns the layers before block `upto`, counted from 0."""
    call = calls_of(_blocks(model)[max(upto - 1, 0)])[0]
    inside = layers_leading_to(call.outputs if upto else call.input_tensors)
    return [*around(image_tower(model))[0], *inside]
