"""A Vision Transformer whose last blocks see learned queries too, as EoMT."""

from keras_vit.layers import QueryTokens, TokenPool
from keras_vit.layers.functional import Model
from keras_vit.models import anatomy
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
    whole = {"final_norm": "before", "pooling": "none", "num_classes": 0}
    return with_queries(vit(None, **arguments | whole), queries, last)


def with_queries(encoder, queries, last):
    """Returns an encoder with learned queries in front of the tokens of its last blocks; these blocks are new.

    Args:
        encoder: A model from `vit` with a norm before pooling `"none"`, and no classes.
        queries, last: As in `query_encoder`.

    Raises:
        ValueError: As `query_encoder`; for an encoder without a last norm, or whose blocks know the number of tokens.
    """
    blocks = anatomy.blocks(encoder)
    first = len(blocks) - last
    if not 0 < last < len(blocks):
        raise ValueError(
            f"Queries must come before one of the blocks after the first, of {len(blocks)}. Received: {last=}"
        )
    _check(encoder, blocks)
    x = QueryTokens(queries, name="queries", dtype=encoder.dtype_policy)(blocks[first - 1].output)
    for layer in (*blocks[first:], encoder.get_layer("norm")):
        x = type(layer).from_config(layer.get_config())(x)  # (batch, queries + tokens, width)
    x = TokenPool("none", num_prefix=queries + anatomy.num_prefix(encoder), name="pool", dtype=encoder.dtype_policy)(x)
    return Model(encoder.input, x, name=encoder.name)


def _check(encoder, blocks):
    """Raises ValueError for blocks to which queries cannot be added."""
    names = {layer.name for layer in encoder.layers}
    block = blocks[-1]
    places = {"relative positions": block.relative, "rotary positions": block.rotary, "windows": blocks[0].windows}
    wrong = [name for name, value in places.items() if value is not None]
    wrong += ["tokens of every block's own positions"] if "position_1" in names else []
    if wrong or "norm" not in names:
        raise ValueError(
            "Queries need a last norm, and blocks that attend to all tokens alike. "
            f"Received: {encoder.name!r}, with {wrong[0] if wrong else 'no last norm'}"
        )
