"""Models with a head on the tokens of several blocks: maps of depth, of keypoints, boxes, masks of queries."""

from keras_vit.layers import (
    BoxesAndMasks,
    DeformableDecoder,
    DepthHead,
    InstanceMasks,
    PoseHead,
    QueryMasks,
    SetBoxes,
    TransformerBlock,
)
from keras_vit.layers.functional import Model
from keras_vit.models import anatomy
from keras_vit.utils.keras_private import call_of

# By the kind of what they give.
HEADS = {"depth": DepthHead, "heatmaps": PoseHead, "boxes": DeformableDecoder, "segments": QueryMasks}
TAP_OPTIONS = ("kind", "blocks", "normed", "whole", "last", "kept", "names", "masks")  # no options of the layer
LAYER_OPTIONS = ("name", "dtype", "trainable", "parts", "grid", "size")  # what follows from the encoder


def with_head(encoder, row):
    """Returns the model from an encoder's images to the maps, or the boxes, of a head.

    Args:
        encoder: A model from `keras_vit.vit` with pooling `"none"` and no classes; for masks, from `query_encoder`.
        row: A dictionary: `kind`, a key of `HEADS`; `blocks`, the numbers of the blocks whose tokens it takes, the
            last of them the encoder's; `normed`, whether they go through the last normalization; `whole`, whether its
            `size` is the image's; `last`, of masks of queries, how many blocks see these; of boxes `kept`, see
            `SetBoxes`, and `masks`, the factor by which masks are smaller than the image, or `None` for none; and
            options of the layer.
    """
    options = {name: value for name, value in row.items() if name not in TAP_OPTIONS}
    size = {"size": encoder.input_shape[1:3]} if row.get("whole") else {}
    tokens = [encoder.get_layer(f"block_{i}").output for i in row["blocks"][:-1]]
    if row["normed"]:
        tokens = [encoder.get_layer("norm")(x) for x in tokens]
    tokens.append(encoder.output)
    tokens = tokens if len(tokens) > 1 else tokens[0]
    head = HEADS[row["kind"]](anatomy.grid(encoder), **options, **size, name="head", dtype=encoder.dtype_policy)
    output = _boxes(encoder, head, tokens, row) if row["kind"] == "boxes" else head(tokens)
    return Model(encoder.input, output, name=encoder.name)


def _boxes(encoder, head, tokens, row):
    """Returns boxes and scores, or those and masks, from the tokens that a `DeformableDecoder` takes."""
    boxes = SetBoxes(end="sigmoid", kept=row["kept"], name="boxes")
    if not row["masks"]:
        return boxes(head(tokens))
    sets, queries, features = head(tokens, return_queries=True)
    size = tuple(side // row["masks"] for side in encoder.input_shape[1:3])
    masks = InstanceMasks(size, row["depth"], name="masks", dtype=encoder.dtype_policy)
    return BoxesAndMasks(name="instances")([boxes(sets), masks(features, queries)])


def head_of(model):
    """Returns what `with_head` takes as `row`, to put a model's head on another encoder; `None` without one."""
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
    more = {"blocks": tuple(_number(call) for call in calls), "normed": normed}
    if kind == "depth":
        more["whole"] = head.size is not None
    elif kind == "segments":
        more["last"] = _after_queries(model)
    elif kind == "boxes":
        more |= _of_boxes(model)
    return {"kind": kind, **more, **options}


def _after_queries(model):
    """Returns the number of blocks after the layer that adds queries."""
    names = [layer.name for layer in model.layers]
    return sum(isinstance(layer, TransformerBlock) for layer in model.layers[names.index("queries") :])


def _of_boxes(model):
    """Returns which classes a detector keeps, and how many times smaller than the image its masks are."""
    kept, masks = model.get_layer("boxes").kept, None
    if layer := next((layer for layer in model.layers if isinstance(layer, InstanceMasks)), None):
        masks = model.input_shape[1] // layer.size[0]
    return {"kept": None if kept is None else tuple(kept), "masks": masks}


def _before_pool(call):
    """Returns the call that made the tokens: pooling `"none"` hands them on."""
    return call_of(call.input_tensors[0]) if call.operation.name == "pool" else call


def _number(call):
    return int(call.operation.name.removeprefix("block_"))
