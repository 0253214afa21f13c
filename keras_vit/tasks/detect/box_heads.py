"""The heads of detectors: what each builds on an encoder."""

import math

import keras
import numpy as np

from keras_vit.tasks import dense

PRIOR = 0.1  # initial score of each class at each position, as in "Objects as Points"
DEFORMABLE = {"width": 256, "depth": 3, "groups": 13}  # what `None` means without weights that say it
QUERIES = 100  # the same, of queries


def points(task, encoder, arguments):
    """Returns boxes at the peaks of a feature map, `(batch, most, 4 + classes)`, a symbolic tensor.

    Args:
        task: The `Detect`.
        encoder: A model from `dense.encoder`.
        arguments: Those of the encoder.
    """
    from keras_vit.layers import PointBoxes

    start = np.array([0.0] * 4 + [math.log(PRIOR / (1 - PRIOR))] * len(task.classes), "float32")
    maps = dense.dpt(encoder, len(start), task.head_options["width"], start)
    return PointBoxes(task.most, name="boxes")(maps)


def tokens(task, encoder, arguments):
    """Returns the boxes of tokens of their own, as `points`."""
    from keras_vit.layers import SetBoxes, SetHead
    from keras_vit.models import anatomy

    last, patches, x = anatomy.num_prefix(encoder), math.prod(anatomy.grid(encoder)), encoder.output
    x = keras.layers.Cropping1D((last - task.most, patches), name="box_tokens", dtype=x.dtype)(x)
    x = keras.layers.Reshape((1, *x.shape[1:]), name="box_sets", dtype=x.dtype)(x)
    sets = SetHead(len(task.classes), 3, name="head", dtype=encoder.dtype_policy)(x)
    return SetBoxes(name="boxes")(sets)  # of (batch, 1, most, 4 + classes + 1)


def decoder(task, encoder, arguments):
    """Returns the boxes of queries after the last block of a decoder, as `points`."""
    from keras_vit.layers import QueryDecoder, SetBoxes
    from keras_vit.models import anatomy

    block = encoder.get_layer("block_0")
    layer = QueryDecoder(
        len(task.classes),
        task.most,
        block.num_heads,
        block.mlp_dim,
        depth=task.head_options["depth"],
        grid=anatomy.grid(encoder)[-2:],  # of clips, of the middle time step
        dropout=block.dropout,
        name="head",
        dtype=encoder.dtype_policy,
    )
    return SetBoxes(name="boxes")(layer(dense.patches(encoder, encoder.output)))  # (batch, blocks, most, ...)


def deformable(task, encoder, arguments):
    """Returns the boxes of queries that attend to places, as `points`; of weights with such a head in its sizes."""
    return deformable_model(task, encoder, arguments, task.most).output


def deformable_model(task, encoder, arguments, queries, masks=None):
    """Returns the model from an encoder's images to the boxes of queries that attend to places, or to boxes and masks.

    Args:
        task, encoder, arguments: As in `points`; the task has a head `"deformable"`.
        queries: Number of queries; `None` for those of the weights, else 100, at most the patches.
        masks: By how much masks are smaller than the image without weights that say it; `None` for none.
    """
    from keras_vit.models import anatomy
    from keras_vit.models.map_heads import with_head

    stated = dense.head_in(arguments.get("weights")) if arguments.get("head") != "new" else None
    stated = stated if stated and stated["kind"] == "boxes" else {}
    own = {name: value for name, value in task.head_options.items() if value is not None}
    width, depth = own.get("width", DEFORMABLE["width"]), len(anatomy.blocks(encoder))
    row = {
        "kind": "boxes",
        "blocks": tuple(dict.fromkeys(math.ceil(i * depth / 4) - 1 for i in (1, 2, 3, 4))),
        "normed": True,
        **DEFORMABLE,
        "num_heads": max(width // 32, 1),
        "cross_heads": max(width // 16, 1),
        "mlp_dim": 8 * width,
        **stated,
        **own,
        "units": len(task.classes),
        "queries": queries or stated.get("queries", min(QUERIES, math.prod(anatomy.grid(encoder)))),
        "kept": None,
        "masks": masks and (stated.get("masks") or masks),
    }
    return with_head(encoder, row)


BUILD = {"points": points, "tokens": tokens, "decoder": decoder, "deformable": deformable}  # by the head's kind
