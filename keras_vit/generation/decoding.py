"""Computes a text decoder word by word: keys and values of the words before are kept in a cache of one size."""

from keras import ops

LAST = ("norm", "transform", "norm_transform")  # layers after the blocks that a decoder may have


def blocks_of(decoder):
    """Returns the blocks of a model from `text_decoder`, in their order."""
    names = {layer.name for layer in decoder.layers}
    count = next(i for i in range(len(names)) if f"block_{i}" not in names)
    return [decoder.get_layer(f"block_{i}") for i in range(count)]


def empty_cache(decoder, sequences, length):
    """Returns a cache without words: for each block keys and values, `(sequences, length, heads, head_dim)`."""
    attentions = [block.attention for block in blocks_of(decoder)]
    shapes = [(sequences, length, each.num_heads, each.head_dim) for each in attentions]
    return [(ops.zeros(shape, each.compute_dtype),) * 2 for shape, each in zip(shapes, attentions)]


def context_of(decoder, context, context_mask=None):
    """Returns what the blocks attend to in a context: keys, values, and a mask if the decoder has one, for each.

    Args:
        decoder: A model from `text_decoder` with a context.
        context, context_mask: As the decoder takes them; `None` for no mask.
    """
    masks = () if context_mask is None else (context_mask[:, None, None],)
    if "project_context" in {layer.name for layer in decoder.layers}:
        context = decoder.get_layer("project_context")(context)
    return [(*block.cross.keys_and_values(context), *masks) for block in blocks_of(decoder)]


def step(decoder, ids, place, cache, context=None, fillers=None):
    """Computes the logits after some words, from what the cache has of the words before them.

    They equal those of the decoder for the whole text.

    Args:
        decoder: A model from `text_decoder`.
        ids: The words, `(sequences, words)`, integers.
        place: Place of the first of them in the text, an integer or a tensor of one.
        cache: As `empty_cache` or this function returns it.
        context: As `context_of` returns it, `None` for a language model. There may be several sequences in a row for
            each context.
        fillers: Number of padding tokens at the beginning of each sequence, `(sequences,)`, integers, so that prompts
            of different lengths are computed together. `None` for none.

    Returns:
        The logits after the last of these words, `(sequences, vocabulary)`, and the cache with these words.
    """
    layers = {layer.name: layer for layer in decoder.layers}
    x = layers["words"](ids, start=place if fillers is None else place - fillers)  # (sequences, words, width)
    x = layers["norm_pre"](x) if "norm_pre" in layers else x
    blocks, pairs = blocks_of(decoder), []
    for block, old, seen in zip(blocks, cache, context or [None] * len(blocks)):
        x, new = block.step(x, place, old, seen, fillers)
        pairs.append(new)
    x = x[:, -1:]
    for name in LAST:
        x = layers[name](x) if name in layers else x
    logits = layers["head"](x) if "head" in layers else layers["words"](x, to_logits=True)
    return logits[:, 0], pairs
