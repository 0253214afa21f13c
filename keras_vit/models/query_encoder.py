"""A Vision Transformer whose last blocks see learned queries too, as EoMT."""

from keras_vit.layers import QueryTokens, TokenPool, TransformerBlock
from keras_vit.layers.blocks.norms import norm as norm_layer
from keras_vit.layers.functional import Model
from keras_vit.models import options
from keras_vit.models.vit import vit


def query_encoder(queries, last, **arguments):
    """Builds a ViT with learned queries in front of the tokens of its last blocks.

    Its layers are those of `vit`, and `queries` before the block that first sees them.

    Args:
        queries: Number of queries.
        last: Number of blocks that see them, at least 1 and fewer than all.
        **arguments: Arguments of `vit`, with all its blocks as `depth`.

    Returns:
        A functional `keras.Model` from images to normalized tokens, `(batch, queries + tokens, width)`.

    Raises:
        ValueError: If `last` is not below the number of blocks.
    """
    depth, rate = arguments["depth"], arguments.get("stochastic_depth") or 0.0
    first = depth - last
    if not 0 < last < depth:
        raise ValueError(f"Queries must come before one of the blocks after the first, of {depth}. Received: {last=}")
    steps = [rate * i / max(depth - 1, 1) for i in range(depth)]
    whole = {"depth": first, "stochastic_depth": steps[first - 1], "final_norm": None, "pooling": "none"}
    encoder = vit(None, **arguments | whole | {"num_classes": 0})
    block, dtype = encoder.get_layer("block_0").get_config(), encoder.dtype_policy
    x = encoder.get_layer(f"block_{first - 1}").output
    x = QueryTokens(queries, name="queries", dtype=dtype)(x)  # (batch, queries + tokens, width)
    for i in range(first, depth):
        x = TransformerBlock.from_config(block | {"name": f"block_{i}", "stochastic_depth": steps[i]})(x)
    x = norm_layer("norm", **options.complete("norm", arguments.get("norm")), dtype=dtype)(x)
    x = TokenPool("none", num_prefix=queries + encoder.get_layer("encoder").num_prefix, name="pool", dtype=dtype)(x)
    return Model(encoder.input, x, name=encoder.name)
