"""Models with published weights, by name."""

import os
import pathlib
import re
import warnings

import keras

from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.files.read import RUN, SUFFIXES
from keras_vit.checkpoints.load import Assumption, from_checkpoint
from keras_vit.checkpoints.published import list_checkpoints, published
from keras_vit.layers.inputs.stems import patch_size_on
from keras_vit.models import variants
from keras_vit.models import vit as plain
from keras_vit.utils import checks
from keras_vit.utils.files import folder


def vit(variant: str | None = "B/16", *, weights: str | os.PathLike | None = None, **arguments) -> keras.Model:
    """Builds a Vision Transformer: pixels in, logits out.

    Dosovitskiy et al. 2021 (arXiv:2010.11929). The layers are called `images, rescale, [stem], patches, encoder,
    [norm_pre], block_0, block_1, ..., [norm], pool, [norm], [pre_logits], head`. Their names and weight paths are
    public.

    Args:
        variant: Row of `VARIANTS` with a patch size, such as `"B/16"` or `"Ti/4"`; row of `HYBRIDS`, such as
            `"R50+L/32"`; or `None`, which needs `width`, `depth`, `num_heads` and `patch_size`.
        weights: Published weights of the variant, such as `"augreg-i21k-i1k-384"` (see `list_checkpoints`); a recipe
            whose weights ship with the package, such as `"mnist"`; or a path, run directory or address, as
            `from_checkpoint` takes it. Other arguments then default to the checkpoint's values. `None` for random
            weights.
        **arguments: Arguments of the model, listed below.

    Keyword arguments:
        image_size: Size of the images in pixels: positive integer or `(height, width)`, a multiple of the patch size.
            Defaults to `224`.
        channels: Number of colour channels. Defaults to `3`.
        mean: Mean of the pixels on a scale of 0 to 1, a number or one per channel. The first layer subtracts it.
            Defaults to `0.5`.
        std: Standard deviation on the same scale, by which the first layer divides. Defaults to `0.5`.
        value_range: The lowest and the highest pixel, which are 0 and 1 on that scale, such as `(0, 4095)` for scans of
            12 bits. Recipes and image files need the default. Defaults to `(0, 255)`.
        stem: Convolutional stem applied before patching: a Keras layer or model that returns a feature map
            `(batch, rows, columns, channels)`, such as `ResNetStem()` or a `keras.applications` network up to one of
            its layers; `"conv"` for a `ConvStem` that ends at the width; or `(filters, stride)` pairs for a
            `ConvStem`, such as `((32, 1), (64, 2))`, whose strides may be words; a third number, as in `((32, 1, 2),
            (64, 2))`, counts the convolutions of a residual branch that follows. The number in the variant's name
            remains the stride of patches in pixels: `"S/16"` with a stem of stride 16 has patches of size 1. Defaults
            to `None`.
        patch_size: Integer or `(height, width)`; overrides the variant's. After a stem, it counts on the feature map.
            Defaults to `None`.
        class_token: Whether to add a class token; `None` adds one if `pooling` needs it. Defaults to `None`.
        distilled: Whether to add DeiT's distillation token, with its own head `head_distilled`. The model returns the
            average of both logits. To train each head on its own target, use `keras.Model(model.input,
            [model.get_layer(n).output for n in ("head", "head_distilled")])`, which shares all weights. Defaults to
            `False`.
        registers: Number of register tokens. Defaults to `0`.
        position: Positions: `"learned"`, `"sincos1d"`, `"sincos2d"` or `None`, see `PatchEncoder`; or `"relative"`, as
            in BEiT, see `RelativePositions`. Defaults to `"learned"`.
        class_position: Whether prefix tokens have positions too. Defaults to `True`.
        block_positions: Whether learned positions are added before each later block too, as in YOLOS; see `Positions`.
            Defaults to `False`.
        rotary: Rotary positions, in addition to `position`: `"dinov3"`, `"eva02"`, `"rope-vit"`, `"rope-vit-mixed"`,
            or a dictionary with options of `RotaryPositions`. DINOv3 has `position=None`. Defaults to `None`.
        patch_norm: Whether to normalise projected patches before positions are added, as AIMv2 does. Defaults to
            `False`.
        pre_norm: Whether to normalise tokens before the first block, as CLIP does. The patch projection then has no
            bias. Defaults to `False`.
        patch_dropout: Share of the patches that are left out at random in training, which makes steps shorter; see
            `PatchDropout`. Defaults to `0.0`.
        width: Channels of a token; overrides the variant's. Defaults to `None`.
        depth: Number of blocks; overrides the variant's. Defaults to `None`.
        num_heads: Number of attention heads, a divisor of the width; overrides the variant's. Defaults to `None`.
        mlp_dim: Hidden channels of each MLP; overrides the variant's, or four times the width without a variant.
            Defaults to `None`.
        qkv_bias: Whether query, key and value have a bias. Defaults to `True`.
        key_bias: Whether the key has one too; DINOv3's has none. Defaults to `True`.
        proj_bias: Whether the attentions' projections and the MLPs have biases. Defaults to `True`.
        qk_norm: Whether to normalise query and key in each head. Defaults to `False`.
        gelu: `"tanh"` (Google, big_vision), `"exact"` (timm, Hugging Face) or `"quick"` (OpenAI's CLIP). Defaults to
            `"tanh"`.
        swiglu: Whether to use a gated MLP, as in DINOv2's giant, instead of GELU; see `MLP`. Defaults to `False`.
        sub_norm: Where blocks have a normalisation before the last matrix of a sublayer too: `"mlp"` or `"both"`, as in
            EVA-02; `None` for nowhere. Defaults to `None`.
        branch_norm: Whether blocks normalise the outputs of their sublayers instead of the inputs; see
            `TransformerBlock`. Defaults to `False`.
        rms_norm: Whether normalisations are by the root mean square, without a mean and a shift, as in AIMv2; not that
            of pooling `"map"`. Defaults to `False`.
        epsilon: Epsilon of every normalisation. Defaults to `1e-6`.
        layer_scale: Initial value of layer scale, or `None` for no layer scale. Defaults to `None`.
        dropout: Dropout rate after positions, attention projections and the dense layers of MLPs. Defaults to `0.0`.
        attention_dropout: Dropout rate of attention scores. Defaults to `0.0`.
        stochastic_depth: Drop rate of the last block; it grows linearly from 0 at the first. Defaults to `0.0`.
        pooling: `"token"`, `"gap"`, `"token+gap"`, `"first"`, `"last"`, `"map"` or `"none"`; see `TokenPool`. Defaults
            to `"token"`.
        attention_pool: Options of pooling `"map"` other than the blocks': a dictionary with `num_heads`, `mlp_dim` or
            `over_prefix`; see `TokenPool`. Defaults to `None`.
        final_norm: Where the last normalisation is: `"before"` pooling (Google, big_vision), `"after"` pooling
            (timm's average pooling), or `None` for nowhere. Defaults to `"before"`.
        representation_size: Channels of a tanh layer `pre_logits` before the head; `True` for the width. Defaults to
            `None`.
        num_classes: Number of logits; 0 or `None` for a model without a head, which returns the pooled vector.
            Defaults to `1000`.
        metadata: Dictionary of plain values that is saved with the model; see `Rescale`. Defaults to `None`.
        name: Name of the model; `None` derives it from the variant. Defaults to `None`.
        dtype: Precision policy of every layer, such as `"mixed_bfloat16"`; `None` for Keras's global policy. Logits
            are always float32. Defaults to `None`.

    Returns:
        A functional `keras.Model` from `(batch, height, width, channels)`, pixels from 0 to 255, integers or
        floats, to `(batch, num_classes)` logits, float32; with pooling `"none"`, logits of each token.

    Raises:
        TypeError: For an unknown argument. The message says which one is meant.
        ValueError: For an unknown variant, an argument outside the above, or weights of another variant.
        ConnectionError: If weights cannot be downloaded.

    Example:

    >>> vit("Ti/4", image_size=32, num_classes=10)(keras.ops.zeros((2, 32, 32, 3))).shape
    (2, 10)
    """
    if weights is None:
        for name in arguments.keys() - plain.DEFAULTS.keys():
            raise TypeError(f"`vit` has no argument {name!r}. {variants.argument(name, plain.DEFAULTS)}")
        return plain.vit(variant, **arguments)
    checks.path("weights", weights)
    variants.parse(variant)  # raises for an unknown variant
    source, place = str(weights), location(weights)
    if place is not None:
        model = from_checkpoint(place, **arguments)
    else:
        tags = [row.name.partition("-")[2] for row in list_checkpoints() if row.variant == variant]
        if source not in tags:
            raise ValueError(
                f"`weights` must be a path, or published for {variant}. "
                f"Received: weights={source!r}. {checks.near(source, tags)} keras_vit.list_checkpoints() has all."
            )
        model = _published(f"{variant}-{source}", arguments)
    wrong = _other_sizes(model, variant, arguments)
    if wrong:
        raise ValueError(f"`weights` must belong to {variant}. Received: weights={source!r} with {', '.join(wrong)}")
    return model


DEFAULTS = {"weights": None, **plain.DEFAULTS}  # of every argument of `vit`


def from_pretrained(name: str | os.PathLike, **overrides) -> keras.Model:
    """Builds a model with trained weights. Published weights are downloaded once and cached.

    Args:
        name: Published weights, such as `"B/16-augreg-i21k-i1k-384"`, see `list_checkpoints`; a recipe whose weights
            ship with the package, such as `"mnist"`; a run directory; or any other source of `from_checkpoint`.
        **overrides: As in `from_checkpoint`, such as `image_size` or `num_classes`.

    Returns:
        A model as from `keras_vit.vit`.

    Raises:
        ValueError: For an unknown name. The message suggests similar ones.
        ConnectionError: If the weights cannot be downloaded.
    """
    checks.path("name", name)
    place = location(name)
    return _published(name, overrides) if place is None else from_checkpoint(place, **overrides)


def _published(name, overrides):
    """Builds a model of `list_checkpoints`; its preprocessing is the table's, unless it is overridden."""
    row = published(name)
    evaluation = {k: getattr(row, k) for k in ("resize", "crop_pct", "interpolation", "antialias")}
    about = {"name": row.name, "evaluation": evaluation, "licence": row.licence, **(overrides.get("metadata") or {})}
    defaults = {"mean": row.mean, "std": row.std, "sha256": row.sha256 or None}
    if not row.num_classes:  # a head that its authors left empty, and the layer before it, which vit_jax drops too
        defaults |= {"num_classes": 0, "head": "new", "representation_size": None}
    if overrides.get("channels", 3) != 3:  # the table's mean and std are for three
        del defaults["mean"], defaults["std"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Assumption)  # the table's models are known
        return from_checkpoint(row.source, **{**defaults, **overrides, "metadata": about})


def location(source):
    """Returns the path or address of a source, also of shipped weights; `None` for any other name."""
    text, path = str(source), pathlib.Path(str(source)).expanduser()
    shipped = {file.stem: file for file in folder("saved_models").glob("*.keras")}
    if text in shipped and not (path / RUN).is_file():  # a run of that name comes first, as in `load_run`
        return shipped[text]
    is_path = path.suffix in SUFFIXES or path.exists() or ("/" in text and not re.match(r"[\w+]+/\d+(-|$)", text))
    return source if is_path or "://" in text else None


def _other_sizes(model, variant, arguments):
    """Returns the sizes of a model that are neither the variant's nor overridden, as words for an error message."""
    encoder, number, hybrid = variants.parse(variant)
    actual = arguments_of(model)
    expected = {size: getattr(encoder, size) for size in variants.SIZES if getattr(encoder, size) is not None}
    patch_size = hybrid.patch_size if hybrid else number
    if patch_size is not None:
        expected["patch_size"] = (patch_size, patch_size)
    if actual["stem"] is not None and number is not None and not hybrid:  # it counts pixels of the image
        expected["patch_size"] = patch_size_on(model.get_layer("patches").input.shape, model.input_shape[1:3], number)
    wrong = [f"{k} {actual[k]}" for k, size in expected.items() if k not in arguments and actual[k] != size]
    stages = hybrid.stages if hybrid else None
    if variant is not None and getattr(actual["stem"], "stages", None) != stages:
        wrong.append("another stem")
    return wrong
