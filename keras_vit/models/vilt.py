"""ViLT: one encoder over the words of a question and the patches of an image."""

import inspect
from collections.abc import Sequence

import keras

from keras_vit.layers import PaddingMask, PatchEncoder, Patches, Rescale, TokenPool, TransformerBlock, Words
from keras_vit.layers.blocks.norms import norm as norm_layer
from keras_vit.layers.functional import Model
from keras_vit.layers.inputs.stems import patch_size_on, stem_for
from keras_vit.models import options, variants
from keras_vit.utils import checks
from keras_vit.utils.typed import Positive, Rate, typed


@typed
@options.explained
def vilt(
    variant: str | None = "B/32",
    *,
    vocabulary: Positive,
    length: Positive,
    pad: int | None = 0,
    image_size: int | tuple[int, int] = 384,
    channels: Positive = 3,
    mean: float | Sequence[float] = 0.5,
    std: float | Sequence[float] = 0.5,
    value_range: Sequence[float] = (0, 255),
    stem: str | Sequence[tuple[int | str, ...]] | keras.Layer | None = None,
    patch_size: int | tuple[int, int] | None = None,
    width: int | None = None,
    depth: int | None = None,
    num_heads: int | None = None,
    mlp_dim: int | None = None,
    norm: dict | None = None,
    word_epsilon: float | None = None,
    block: dict | None = None,
    dropout: Rate = 0.0,
    stochastic_depth: Rate = 0.0,
    answer_dim: int | None = None,
    num_classes: int | None = 3129,
    metadata: dict | None = None,
    name: str | None = None,
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Builds ViLT, which answers questions about images: one encoder over words and patches.

    Kim et al. 2021 (arXiv:2102.03334), section 3. The token of the first word stands for both. The layers are called
    `images, texts, words, words_norm, [words_drop], rescale, [stem], patches, encoder, tokens, mask, block_0,
    block_1, ..., norm, pool, pre_logits, [answer, answer_norm, answer_gelu], head`. Their names and weight paths are
    public. The paper's vectors for the two modalities are in the shift of `words_norm` and in the positions of patches.

    Args:
        variant: As in `vit`, without hybrids. Defaults to `"B/32"`, the paper's.
        vocabulary: Number of ids of words.
        length: Number of ids in every text, padding included.
        pad: Id of the padding token; no token attends to it. `None` if words are never masked. Defaults to `0`.
        image_size: As in `vit`. Defaults to `384`.
        channels: As in `vit`. Defaults to `3`.
        mean: As in `vit`. Defaults to `0.5`.
        std: As in `vit`. Defaults to `0.5`.
        value_range: As in `vit`. Defaults to `(0, 255)`.
        stem: As in `vit`. Defaults to `None`.
        patch_size: As in `vit`. Defaults to `None`.
        width: As in `vit`. Defaults to `None`.
        depth: As in `vit`. Defaults to `None`.
        num_heads: As in `vit`. Defaults to `None`.
        mlp_dim: As in `vit`. Defaults to `None`.
        norm: As in `vit`. Defaults to `None`.
        word_epsilon: Epsilon of the normalization of words; `None` for that of `norm`. Defaults to `None`.
        block: As in `vit`. Defaults to `None`.
        dropout: As in `vit`, also after words. Defaults to `0.0`.
        stochastic_depth: As in `vit`. Defaults to `0.0`.
        answer_dim: Channels of the hidden layer between `pre_logits` and `head`; twice the width if `None`; 0 for no
            such layer, as for retrieval. Defaults to `None`.
        num_classes: Number of answers; 0 or `None` for a model without a head, which returns the pooled vector.
            Defaults to `3129`, those of VQA v2.
        metadata: Dictionary of plain values that is saved with the model; see `Rescale`. A table of words in it,
            `words`, or a tokenizer, `tokens`, is kept in the layer `words`, as in `text_tower`. Defaults to `None`.
        name: Name of the model. Defaults to `None`, such as `"vilt_B_32"`.
        dtype: As in `vit`. Ids are int32 and logits float32 under any. Defaults to `None`.

    Returns:
        A functional `keras.Model` from `{"images": (batch, height, width, channels), "texts": (batch, length)}`, pixels
        from 0 to 255 and int32 ids, to `(batch, num_classes)` logits, float32.

    Raises:
        ValueError: For an unknown or hybrid variant, or an argument outside the above.

    Example:

    >>> model = vilt("Ti/8", vocabulary=30, length=12, image_size=64, depth=4, num_classes=13)
    >>> model({"images": keras.ops.ones((2, 64, 64, 3)), "texts": keras.ops.ones((2, 12), "int32")}).shape
    (2, 13)
    """
    sizes = variants.sizes_of(variant, patch_size, width=width, depth=depth, mlp_dim=mlp_dim, num_heads=num_heads)
    if sizes.stages is not None:
        raise ValueError(
            f"`variant` must be a size and a patch size, such as 'B/32'. Received: variant={checks.shown(variant)}"
        )
    norm, block = options.complete("norm", norm), options.complete("block", block)
    height_width = checks.pair("image_size", image_size)
    checks.above_zero(word_epsilon=norm["epsilon"] if word_epsilon is None else word_epsilon)
    if pad is not None:
        checks.whole(pad=pad)
        if pad >= vocabulary:
            raise ValueError(f"`pad` must be an id of the vocabulary. Received: pad={pad}, vocabulary={vocabulary}")
    answer_dim = 2 * sizes.width if answer_dim is None else answer_dim
    checks.whole(answer_dim=answer_dim, num_classes=num_classes or 0)
    if not isinstance(metadata, (dict, type(None))):
        raise ValueError(f"`metadata` must be a dictionary. Received: metadata={checks.shown(metadata)}")
    about = dict(metadata or {})
    of_words = {key: about.pop(key) for key in WORDS_METADATA if key in about}
    dtype = keras.dtype_policies.get(dtype)
    norm = {**norm, "dtype": dtype}

    texts = keras.Input((length,), dtype="int32", name="texts")
    x = Words(vocabulary, sizes.width, length, metadata=of_words, name="words", dtype=dtype)(texts)
    of_epsilon = {} if word_epsilon is None else {"epsilon": word_epsilon}
    x = norm_layer("words_norm", **{**norm, **of_epsilon})(x)  # (batch, length, width)
    x = keras.layers.Dropout(dropout, name="words_drop", dtype=dtype)(x) if dropout else x

    images = keras.Input((*height_width, channels), name="images")
    pixels = Rescale(mean, std, about, value_range, name="rescale", dtype="float32")(images)
    stem = stem_for(stem, sizes, dtype)
    pixels = pixels if stem is None else stem(pixels)  # (batch, rows, columns, channels)
    patches = Patches(
        sizes.patch_size or patch_size_on(pixels.shape, height_width, sizes.stride), name="patches", dtype=dtype
    )
    grid = patches.grid(pixels.shape)
    encoder = PatchEncoder(sizes.width, grid=grid, dropout=dropout, name="encoder", dtype=dtype)
    y = encoder(patches(pixels))  # (batch, 1 + patches, width)

    x = keras.layers.Concatenate(axis=1, name="tokens", dtype=dtype)([x, y])  # (batch, length + 1 + patches, width)
    mask = {} if pad is None else {"attention_mask": PaddingMask(pad, y.shape[1], name="mask", dtype=dtype)(texts)}
    for i in range(sizes.depth):
        rate = stochastic_depth * i / max(sizes.depth - 1, 1)
        of_block = {**block, **norm, "dropout": dropout, "stochastic_depth": rate}
        x = TransformerBlock(sizes.num_heads, sizes.mlp_dim, name=f"block_{i}", **of_block)(x, **mask)
    x = norm_layer("norm", **norm)(x)
    x = TokenPool("first", num_prefix=0, name="pool", dtype=dtype)(x)  # (batch, width)
    x = keras.layers.Dense(sizes.width, activation="tanh", name="pre_logits", dtype=dtype)(x)
    if num_classes and answer_dim:
        x = keras.layers.Dense(answer_dim, name="answer", dtype=dtype)(x)
        x = norm_layer("answer_norm", rms_norm=False, epsilon=1e-5, dtype=dtype)(x)  # PyTorch's default
        x = keras.layers.Activation("gelu", name="answer_gelu", dtype=dtype)(x)  # the exact one
    if num_classes:
        x = keras.layers.Dense(num_classes, kernel_initializer="zeros", name="head", dtype="float32")(x)
    return Model({"images": images, "texts": texts}, x, name=name or sizes.name.replace("vit_", "vilt_", 1))


WORDS_METADATA = ("words", "tokens")  # metadata of the layer `words`: a table, or the source of a published tokenizer
ARGUMENTS = tuple(inspect.signature(vilt).parameters)
