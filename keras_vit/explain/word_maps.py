"""Which words attend to which: in text towers and language models, and of what is written over a source."""

import keras
import numpy as np
from keras import ops

from keras_vit.explain import inside
from keras_vit.generation.decoding import blocks_of
from keras_vit.layers import DecoderBlock, TransformerBlock, Words
from keras_vit.models.captioner import context_for
from keras_vit.models.inputs import table_of
from keras_vit.traits import traits_of
from keras_vit.utils.keras_private import calls_of

AT_ONCE = 8  # texts


def reads_words(model) -> bool:
    """Returns whether a model reads texts alone: a text tower, or a language model."""
    inputs = getattr(model, "inputs", None) or ()
    words = any(isinstance(layer, Words) for layer in getattr(model, "layers", ()))
    return words and len(inputs) == 1 and len(inputs[0].shape) == 2


def attention_of_texts(model: keras.Model, ids) -> np.ndarray:
    """Returns the attention scores between the words of texts, of every block and head.

    Words that are masked, later ones of a causal model and padding, have the score 0.

    Args:
        model: A model from `keras_vit.text_tower`, or a language model from `keras_vit.text_decoder`.
        ids: Integers, `(batch, words)`, such as from `keras_vit.tokenizer`.

    Returns:
        float32 array, `(layers, batch, heads, words, words)`; each row sums to one.

    Raises:
        ValueError: For ids that do not fit the model.
    """
    ids = _checked(model, ids, "ids", model.input_shape[1])
    blocks = [layer for layer in model.layers if isinstance(layer, TransformerBlock | DecoderBlock)]
    entering = [block.input for block in blocks]

    def read(ids):
        states = inside.computed(model.input, entering, ops.convert_to_tensor(ids))
        return np.stack([_scores(block, *keras.tree.flatten(state)) for block, state in zip(blocks, states)])

    return np.concatenate([read(ids[i : i + AT_ONCE]) for i in range(0, len(ids), AT_ONCE)], axis=1)


def attention_over_source(model: keras.Model, sources, ids) -> np.ndarray:
    """Returns which words of the sources were read for each word that was written: the decoder's cross-attention.

    As Bahdanau et al. 2015 (arXiv:1409.0473), figure 3, for each block and head.

    Args:
        model: A model from `keras_vit.captioner` with a text tower.
        sources: Ids of the sources, integers `(batch, length)`.
        ids: Ids of the texts with their start, `(batch, words)`, as `keras_vit.generate_text` returns them.

    Returns:
        float32 array, `(layers, batch, heads, words - 1, length)`: for each id after the first what was read to write
        it. Those after the end of a text mean nothing. Each row sums to one, and includes the padding of the source
        unless the decoder has `mask_context`.

    Raises:
        ValueError: For another model, and for ids that do not fit it.
    """
    traits_of(model, "The model must be one from keras_vit.captioner with a text tower.", structure="translator")
    source, decoder = model.get_layer("source"), model.get_layer("text")
    sources = _checked(source, sources, "sources", source.input_shape[1])
    ids = _checked(decoder, ids, "ids")
    if len(ids) != len(sources) or ids.shape[1] < 2:
        raise ValueError(f"`ids` must be ({len(sources)}, words), at least two each. Received: shape={ids.shape}")
    blocks = blocks_of(decoder)
    entering = [block.input for block in blocks]

    def read(sources, ids):
        context = context_for(decoder, source, ops.convert_to_tensor(sources), training=False)
        inputs = {"texts": ops.convert_to_tensor(ids[:, :-1]), **context}
        maps = []
        for block, (x, seen, *given) in zip(blocks, inside.computed(decoder.input, entering, inputs)):
            settings = {**dict(zip(_masks_of(block), given)), "use_causal_mask": True, "training": False}
            *_, scores = block(x, seen, **settings, return_attention_scores=True)
            maps.append(ops.convert_to_numpy(ops.cast(scores, "float32")))
        return np.stack(maps)

    parts = [slice(i, i + AT_ONCE) for i in range(0, len(ids), AT_ONCE)]
    return np.concatenate([read(sources[part], ids[part]) for part in parts], axis=1)


def _masks_of(block):
    """Returns the names of the masks that a decoder's block gets in its model, in the order of its inputs."""
    given = calls_of(block)[0].arguments.kwargs
    return [name for name in given if name.endswith("_mask") and keras.backend.is_keras_tensor(given[name])]


def _scores(block, x, *mask):
    """Returns the scores of a block's self-attention, `(batch, heads, words, words)`, as its model calls it."""
    node = calls_of(block)[0]
    settings = {"use_causal_mask": bool(node.arguments.kwargs.get("use_causal_mask")), "training": False}
    settings |= {"return_attention_scores": True, **({"attention_mask": mask[0]} if mask else {})}
    if isinstance(block, TransformerBlock):
        *_, scores = block(x, **settings)
    else:
        y = block.normed("pre", block.norm1, x, False)
        *_, scores = block.attention(y, y, **settings)
    return ops.convert_to_numpy(ops.cast(scores, "float32"))


def _checked(model, ids, name, length=None):
    """Returns ids as an int32 array, after checking that they fit a model."""
    ids, rows = np.asarray(ids), table_of(model)[1]
    fits = ids.ndim == 2 and ids.dtype.kind in "iu" and ids.size and length in (None, ids.shape[1])
    if not fits or ids.min() < 0 or ids.max() >= rows:
        raise ValueError(
            f"`{name}` must be integers (texts, {length or 'words'}), from 0 to below {rows}. "
            f"Received: shape={ids.shape}, dtype={ids.dtype}"
        )
    return ids.astype("int32")
