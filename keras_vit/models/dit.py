"""DiT: a Transformer that leads from noise to images."""

import inspect
from collections.abc import Sequence
from typing import Literal

import keras
import numpy as np

from keras_vit.layers import AdaptiveBlock, AdaptiveHead, PatchEncoder, Patches, Rescale, TimeEmbedding, Words
from keras_vit.layers.attention.rotary import rotary_options
from keras_vit.layers.functional import Model
from keras_vit.models import options, variants
from keras_vit.utils import checks, resampling
from keras_vit.utils.typed import Positive, Rate, Switch, typed

INPUTS = ("images", "times", "labels")
TEXT_INPUTS = (*INPUTS[:2], "texts")
TEXT, EMPTY = "text", "empty"  # its text tower; in the metadata of its words, the ids of a text without words
NEAREST = 0.02  # to the time of an image, of which velocities are computed: the last of 50 steps
XL = variants.Variant(1152, 28, 4608, 16, "Peebles and Xie 2023 (arXiv:2212.09748), table 1")


@typed
@options.explained
def dit(
    variant: str | None = "S/2",
    *,
    image_size: int | tuple[int, int] = 32,
    channels: Positive = 4,
    out_channels: int | None = None,
    mean: float | Sequence[float] = 0.5,
    std: float | Sequence[float] = 0.5,
    value_range: Sequence[float] = (-1, 1),
    patch_size: int | tuple[int, int] | None = None,
    width: int | None = None,
    depth: int | None = None,
    num_heads: int | None = None,
    mlp_dim: int | None = None,
    norm: dict | None = None,
    mlp_epsilon: float | None = None,
    block: dict | None = None,
    rotary: str | dict | None = None,
    dropout: Rate = 0.0,
    time_scale: float = 1000.0,
    time_closed: bool = False,
    own_conditions: Switch = False,
    num_classes: Positive = 1000,
    text: keras.Model | None = None,
    cross_attention: bool | None = None,
    predicts: Literal["output", "image"] = "output",
    metadata: dict | None = None,
    name: str | None = None,
    dtype: str | keras.DTypePolicy | None = None,
) -> keras.Model:
    """Builds a diffusion Transformer, which predicts the noise in an image, or the velocity to one without.

    Peebles and Xie 2023 (arXiv:2212.09748), section 3.2, "DiT with adaLN-Zero". The layers are called `images, times,
    labels, rescale, patches, encoder, time, label, condition, silu, block_0, block_1, ..., head`. Their names and
    weight paths are public. `keras_vit.sample` draws images with a model that was trained by `Generate`.

    With a text tower, texts take the place of labels, and the layers `texts, text, pooled` that of `labels, label`.
    `text` is the tower, a nested model. Its vector is part of the condition, and each block attends to its tokens, up
    to the end of the text (Chen et al. 2024, arXiv:2310.00426, section 2.3, "PixArt").

    Positions are learned, and begin as sines and cosines (those of the paper stay as they begin).

    Args:
        variant: As in `vit`, without hybrids; or `"XL/2"`, the paper's largest. Defaults to `"S/2"`.
        image_size: Size of the images, or of the latents of an autoencoder, as in `vit`. Defaults to `32`.
        channels: Channels of the images. Defaults to `4`, those of latents.
        out_channels: Channels of the output; `None` for `channels`. Published models have twice as many: the second
            half is for their variance. Defaults to `None`.
        mean: As in `vit`. Defaults to `0.5`.
        std: As in `vit`. Defaults to `0.5`.
        value_range: As in `vit`: with the defaults, numbers go in as they are. Defaults to `(-1, 1)`.
        patch_size: As in `vit`. Defaults to `None`.
        width: As in `vit`. Defaults to `None`.
        depth: As in `vit`. Defaults to `None`.
        num_heads: As in `vit`. Defaults to `None`.
        mlp_dim: As in `vit`. Defaults to `None`.
        norm: As in `vit`; the normalizations have no weights but those by the root mean square, and the head's is by
            mean and variance. Defaults to `None`.
        mlp_epsilon: Epsilon of the normalizations before the MLPs, if it is another. Defaults to `None`.
        block: As in `vit`; see `AdaptiveBlock`. Defaults to `None`.
        rotary: As in `vit`. Defaults to `None`.
        dropout: As in `vit`. Defaults to `0.0`.
        time_scale: Factor of the times; see `TimeEmbedding`. Defaults to `1000.0`, for times from 0 to 1.
        time_closed: See `closed` in `TimeEmbedding`. Defaults to `False`.
        own_conditions: Whether each block has times and labels of its own, `time_0`, `label_0` and so on, as diffusers
            writes its models; the last layer has those of the first. Defaults to `False`.
        num_classes: Number of classes; the label of this number means none of them. Defaults to `1000`.
        text: A model from `text_tower` with the id `end` after each text; a tower that is not `causal` reads padding
            too. For guidance, the metadata of its layer `words` must have the ids of a text without words, as
            `"empty"`. `None` for labels. Defaults to `None`.
        cross_attention: With a text tower, whether the blocks attend to its tokens; else its vector is all that they
            know. `None` for `True` with a text tower. Defaults to `None`.
        predicts: What the last layer predicts: `"output"`, what the model returns; or `"image"`, the image without
            noise, at time 1, from which the model computes the velocity, `(image - x) / (1 - time)`, where `1 - time`
            is at least 0.02. Patches of more values than the width need it: noise takes up all of them, images do not
            (Li and He 2025, arXiv:2511.13720, "JiT"). Defaults to `"output"`.
        metadata: Dictionary of plain values that is saved with the model; see `Rescale`. Defaults to `None`.
        name: Name of the model. Defaults to `None`, such as `"dit_S_2"`.
        dtype: As in `vit`. Times are float32, labels int32 and the output float32 under any. Defaults to `None`.

    Returns:
        A functional `keras.Model` from `{"images": (batch, height, width, channels), "times": (batch,), "labels":
        (batch,)}`, int32 labels from 0 to `num_classes`, to `(batch, height, width, out_channels)`, float32. With a
        text tower, `"texts"`, int32 ids, `(batch, length)`, take the place of labels.

    Raises:
        ValueError: For an unknown or hybrid variant, patches that do not divide the images, a text tower without an
            end, or an argument outside the above.

    Example:

    >>> model = dit(None, image_size=28, channels=1, patch_size=4, width=96, depth=4, num_heads=4, num_classes=10)
    >>> model({"images": keras.ops.zeros((2, 28, 28, 1)), "times": keras.ops.zeros(2), "labels": np.array([3, 10])})
    """
    sizes = sizes_of(variant, patch_size, width=width, depth=depth, mlp_dim=mlp_dim, num_heads=num_heads)
    if sizes.stages is not None:
        raise ValueError(
            f"`variant` must be a size and a patch size, such as 'S/2'. Received: variant={checks.shown(variant)}"
        )
    norm, block = options.complete("norm", norm), options.complete("block", block)
    height_width = checks.pair("image_size", image_size)
    patch_size = checks.pair("patch_size", sizes.patch_size or sizes.stride)
    checks.positive(out_channels=channels if out_channels is None else out_channels)
    if any(side % part for side, part in zip(height_width, patch_size)):
        raise ValueError(
            f"`image_size` must be a multiple of the patch size. Received: {height_width} with patches of {patch_size}"
        )
    if cross_attention is not None:
        checks.switch(cross_attention=cross_attention)
        if text is None:
            raise ValueError(f"`cross_attention` is for a text tower. Received: {cross_attention} without `text`")
    if predicts == "image" and out_channels not in (None, channels):
        raise ValueError(
            f"A predicted image has the channels of the images, {channels}. Received: out_channels={out_channels}"
        )
    dtype = keras.dtype_policies.get(dtype)
    norm = {**norm, "dtype": dtype}

    images = keras.Input((*height_width, channels), name="images")
    times = keras.Input((), name="times", dtype="float32")
    if text is None:
        given, context, mask = keras.Input((), name="labels", dtype="int32"), None, None
    else:
        given, vector, context, mask = _read(text, cross_attention is not False)
    pixels = Rescale(mean, std, metadata, value_range, name="rescale", dtype="float32")(images)
    patches = Patches(patch_size, name="patches", dtype=dtype)
    grid = patches.grid(pixels.shape)
    encoder = PatchEncoder(sizes.width, class_token=False, grid=grid, dropout=dropout, name="encoder", dtype=dtype)
    x = encoder(patches(pixels))  # (batch, tokens, width)
    encoder.position_embedding.assign(resampling.sincos_2d(grid, sizes.width, inclusive=False)[None])

    def condition(mark):
        time = TimeEmbedding(sizes.width, scale=time_scale, closed=time_closed, name=f"time{mark}", dtype=dtype)(times)
        if text is None:
            normal = keras.initializers.RandomNormal(stddev=0.02)
            table = keras.layers.Embedding(num_classes + 1, sizes.width, normal, name=f"label{mark}", dtype=dtype)
            asked = table(given)
        else:
            asked = keras.layers.Dense(sizes.width, name=f"pooled{mark}", dtype=dtype)(vector)
        both = keras.layers.Add(name=f"condition{mark}", dtype=dtype)([time, asked])
        return keras.layers.Activation("silu", name=f"silu{mark}", dtype=dtype)(both)  # (batch, width)

    places = {"grid": grid, "num_prefix": 0}
    block |= {"rotary": None if rotary is None else {**rotary_options(rotary), **places}, "dropout": dropout, **norm}
    conditions = [condition(f"_{i}") for i in range(sizes.depth)] if own_conditions else [condition("")]
    for i in range(sizes.depth):
        of_block = {**block, "mlp_epsilon": mlp_epsilon, "name": f"block_{i}"}
        layer = AdaptiveBlock(sizes.num_heads, sizes.mlp_dim, **of_block)
        x = layer(x, conditions[own_conditions and i], *(() if context is None else (context, mask)))
    of_head = {"epsilon": norm["epsilon"], "name": "head", "dtype": "float32"}
    head = AdaptiveHead(out_channels or channels, patch_size, grid, **of_head)
    inputs = dict(zip(INPUTS if text is None else TEXT_INPUTS, (images, times, given)))
    outputs = head(x, conditions[0])  # (batch, height, width, out_channels)
    if predicts == "image":
        outputs = (outputs - images) / keras.ops.maximum(1 - keras.ops.reshape(times, (-1, 1, 1, 1)), NEAREST)
    return Model(inputs, outputs, name=name or sizes.name)


def sizes_of(variant, patch_size, **overrides):
    """Returns the sizes of a variant, as `variants.sizes_of`; `"XL"` is one too."""
    largest = isinstance(variant, str) and variant.partition("/")[0] == "XL"
    row = XL._asdict() if largest else {}
    overrides = {name: row.get(name) if value is None else value for name, value in overrides.items()}
    sizes = variants.sizes_of(variant.replace("XL", "L", 1) if largest else variant, patch_size, **overrides)
    return sizes._replace(name=sizes.name.replace("vit_L" if largest else "vit_", "dit_XL" if largest else "dit_", 1))


def _read(text, attended):
    """Returns the ids of texts, the vector of each, and its tokens and their mask, or `None` for both.

    Args:
        text: As in `dit`.
        attended: Whether tokens are returned.
    """
    layers = {layer.name: layer for layer in getattr(text, "layers", ())}
    end = getattr(layers.get("pool"), "end", None)
    if not isinstance(layers.get("words"), Words) or len(getattr(text, "output_shape", ())) != 2 or end is None:
        raise ValueError(
            "`text` must be a model from keras_vit.text_tower with `end`, the id after a text. "
            f"Received: {checks.shown(getattr(text, 'name', text))}"
        )
    ids = keras.Input(text.input_shape[1:], name="texts", dtype="int32")
    outputs = [text.outputs[0], *([layers["norm"].output] if attended else [])]
    vector, *tokens = keras.tree.flatten(Model(text.inputs[0], outputs, name=TEXT)(ids))
    return ids, vector, *((tokens[0], _until(end, ids)) if attended else (None, None))


def _until(end, ids):
    """Returns which words of texts are not after the first `end`: booleans, `(batch, 1, 1, length)`."""
    ends = keras.ops.cast(keras.ops.equal(ids, end), "int32")
    return keras.ops.expand_dims(keras.ops.equal(keras.ops.cumsum(ends, axis=1) - ends, 0), (1, 2))


def is_dit(model):
    """Returns whether a model is one from `dit`: it takes noisy images, times, and labels or texts."""
    inputs = getattr(model, "input", None) if isinstance(model, keras.Model) else None
    return isinstance(inputs, dict) and set(inputs) in (set(INPUTS), set(TEXT_INPUTS))


def reads_texts(model):
    """Returns whether a model from `dit` takes texts in place of labels."""
    return TEXT_INPUTS[2] in model.input


def words_of(model):
    """Returns the layer of words of a model from `dit` with a text tower."""
    return model.get_layer(TEXT).get_layer("words")


def classes_of(model):
    """Returns the number of classes of a model from `dit`; the label of this number means none of them.

    Of one that takes texts, 0.
    """
    if reads_texts(model):
        return 0
    return next(layer for layer in model.layers if layer.name in ("label", "label_0")).input_dim - 1


def none_of(model):
    """Returns what stands for no class and no text: a label, or ids, int32 `()` or `(length,)`."""
    if not reads_texts(model):
        return np.int32(classes_of(model))
    ids = words_of(model).metadata.get(EMPTY)
    if ids is None:
        raise ValueError(
            "For guidance, the layer `words` of the text tower must have the ids of a text without words in its "
            f"metadata, as {EMPTY!r}. Received: {model.name!r} without"
        )
    return np.array(ids, "int32")


ARGUMENTS = tuple(inspect.signature(dit).parameters)
