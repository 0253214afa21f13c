"""Models with a head on the tokens of several blocks that returns maps: depth, heat maps of keypoints, or masks."""

from keras_vit.layers import DepthHead, PoseHead, QueryMasks, TransformerBlock
from keras_vit.layers.functional import Model
from keras_vit.models import anatomy
from keras_vit.utils.keras_private import call_of

HEADS = {"depth": DepthHead, "heatmaps": PoseHead, "segments": QueryMasks}  # by the kind of what they give
TAP_OPTIONS = ("kind", "blocks", "normed", "whole", "last")  # what is not an option of the layer
LAYER_OPTIONS = ("name", "dtype", "trainable", "parts", "grid", "size")  # what follows from the encoder


def with_head(encoder, row):
    """Returns the model from an encoder's images to the maps of a head.

    Args:
        encoder: A model from `keras_vit.vit` with pooling `"none"` and no classes; for masks, from `query_encoder`.
        row: A dictionary: `kind`, a key of `HEADS`; `blocks`, the numbers of the blocks whose tokens it takes, the
            last of them the encoder's; `normed`, whether they go through the last normalization; `whole`, whether its
            `size` is the image's; `last`, of masks, how many blocks see the queries; and options of the layer.
    """
    options = {name: value for name, value in row.items() if name not in TAP_OPTIONS}
    size = {"size": encoder.input_shape[1:3]} if row.get("whole") else {}
    tokens = [encoder.get_layer(f"block_{i}").output for i in row["blocks"][:-1]]
    if row["normed"]:
        tokens = [encoder.get_layer("norm")(x) for x in tokens]
    tokens.append(encoder.output)
    head = HEADS[row["kind"]](anatomy.grid(encoder), **options, **size, name="head", dtype=encoder.dtype_policy)
    return Model(encoder.input, head(tokens if len(tokens) > 1 else tokens[0]), name=encoder.name)


def head_of(model):
    """Returns what `with_head` takes as `stated`, to put a model's head on another encoder; `None` without one."""
    head = next((layer for layer in getattr(model, "layers", ()) if layer.name == "head"), None)
    kind = next((kind for kind, owner in HEADS.items() if type(head) is owner), None)
    if kind is None:
        return None
    inputs = head.input if isinstance(head.input, (list, tuple)) else [head.input]
    calls = [_before_pool(call_of(tokens)) for tokens in inputs]
    normed = calls[0].operation.name == "norm"
    calls = [_before_pool(call_of(call.input_tensors[0])) for call in calls] if normed else calls
    config = head.get_config()
    options = {name: value for name, value in config.items() if name not in LAYER_OPTIONS}
    more = {"whole": head.size is not None} if kind == "depth" else {}
    more |= {"last": _after_queries(model)} if kind == "segments" else {}
    return {"kind": kind, "blocks": tuple(_number(call) for call in calls), "normed": normed, **more, **options}


def _after_queries(model):
    """Returns the number of blocks after the layer that adds queries."""
    names = [layer.name for layer in model.layers]
    return sum(isinstance(layer, TransformerBlock) for layer in model.layers[names.index("queries") :])


def _before_pool(call):
    """Returns the call that made the tokens: pooling `"none"` hands them on."""
    return call_of(call.input_tensors[0]) if call.operation.name == "pool" else call


def _number(call):
    return int(call.operation.name.removeprefix("block_"))
