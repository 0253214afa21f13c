"""Loads a checkpoint of any format: into a model, or as the model that the file describes."""

import os
from typing import Any

import keras

from keras_vit.checkpoints import autoencoder, images, open_detection, open_segmentation, tables
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.build import check_overrides
from keras_vit.checkpoints.describe import LIBRARIES, NOTES, describe, without_weights
from keras_vit.checkpoints.families import family_of
from keras_vit.checkpoints.files.fetch import fetch
from keras_vit.checkpoints.files.own import HEAD_METADATA, SAVED
from keras_vit.checkpoints.files.pipeline import is_pipeline
from keras_vit.checkpoints.files.pytorch import check_pytorch
from keras_vit.checkpoints.files.read import open_checkpoint, open_files
from keras_vit.checkpoints.heads import check_head, kind_of, note_kind
from keras_vit.checkpoints.match import fill, steps_for
from keras_vit.checkpoints.own_models import holds, load_own, own_file, read_own
from keras_vit.checkpoints.remarks import warn_of_assumptions, warn_of_differences, warn_of_preparation
from keras_vit.checkpoints.request import Options, Request
from keras_vit.checkpoints.text import check_part, numbers_of
from keras_vit.layers import Rescale
from keras_vit.layers.heads.token_pool import POOL
from keras_vit.models.backbone import check_plain
from keras_vit.models.captioner import MARKS, captioner
from keras_vit.models.options import flat
from keras_vit.models.two_towers import two_towers
from keras_vit.models.vilt import WORDS_METADATA
from keras_vit.traits import Traits
from keras_vit.utils import checks
from keras_vit.utils.keras_private import shapes_only
from keras_vit.utils.warned import warn

WEIGHTS_METADATA = (
    "labels",
    "name",
    "license",
    *HEAD_METADATA,
)  # metadata that belongs to the weights, not to the model
JOINED = {"heads": open_detection.joined, "masks": open_segmentation.joined}
STATED = ("config.json", NOTES, SAVED, "the q-k norm's width")  # origins that state the number of heads: not a rule


def load_weights(
    model: keras.Model,
    source: os.PathLike | str,
    *,
    format: str = "auto",
    head: str = "require",
    resample: str | None = None,
    patches: str = "require",
    grid: int | tuple[int, int] | None = None,
    sha256: str | None = None,
) -> keras.Model:
    """Loads a published checkpoint into a model, at the model's own image size and number of channels.

    Position embeddings are resampled to the model's grid. Kernels for three channels are adapted to the model's by
    timm's rule: the sum for one channel. If any weight or tensor does not match, loading fails with one clear error and
    leaves the model untouched.

    Args:
        model: A model from `keras_vit.vit`, `keras_vit.vilt` or, for a `.keras` file, `keras_vit.two_towers` or
            `keras_vit.captioner`.
        source: A file (`.npz`, `.safetensors`, `.keras`, `.h5`, `.pth`, `.pt`, `.bin`, `.ckpt`, `.pth.tar`), a
            directory with one, that of a run, `"https://..."`, or `"hf://owner/name"`.
        format: `"google"` (vit_jax, big_vision), `"timm"`, `"huggingface"`, `"torchvision"`, `"openai"` (CLIP's own
            names), `"keras_hub"` (presets), `"keras"` (this package's own), or `"auto"` to detect it by the tensors'
            names.
        head: `"require"`, or `"new"` to keep the model's head and ignore the source's; also to keep its registers, if
            the source has another number of them.
        resample: How to resample positions; see `keras_vit.utils.resampling.resize_matrix`. `None` for the method of
            the source's own code.
        patches: `"require"` the source's patch size, or `"resize"` its kernels to the model's (FlexiViT's
            pseudo-inverse) by the method of the source's own code. The name of a method resizes by that one.
        grid: `(rows, columns)` of the source's patches, if they are not square and not in its `config.json`.
        sha256: SHA-256 of a downloaded file, in hexadecimal; its first eight digits suffice.

    Returns:
        The model.

    Raises:
        ValueError: For a damaged file, another architecture, missing or surplus tensors, other shapes, or numbers that
            are not finite; for other arguments than the above.
        FileNotFoundError, ConnectionError: If there is no such source, or it cannot be downloaded.

    Warns:
        UserWarning: If the model computes another function than the source, for example by another GELU; if the file
            has several models' weights, or tensors that are left out.
    """
    options = Options(format, head, resample, patches, grid).checked(LIBRARIES)
    if Traits(model).structure != "plain":
        return load_own(model, source, options.changed(), sha256)
    own = arguments_of(model, words=True)
    check_plain(model, "Loading a checkpoint", lora=False)
    check_pytorch(source)
    with open_checkpoint(fetch(source, sha256=sha256)) as checkpoint:
        description = describe(checkpoint, format)._replace(options=options)
        _check_architecture(source, description, own)
        check_head(model, description, own)
        images.adapt_to(description, own)
        about = images.metadata_of(description, source, own["num_classes"])
        kind = kind_of(checkpoint, own["num_classes"], options)
        fill(model, checkpoint, steps_for(model, description))
    _note(model, about, kind)
    for remark in description.remarks:
        warn(remark)
    warn_of_differences(source, description.arguments, own, description.origins)
    warn_of_preparation(source, description.origins)
    return model


def _note(model, about, kind):
    """Writes what is known of loaded weights into the metadata of a model."""
    if isinstance(rescale := model.get_layer("rescale"), Rescale):
        own = {name: value for name, value in rescale.metadata.items() if name not in WEIGHTS_METADATA}
        of_words = {name: about.pop(name) for name in WORDS_METADATA if name in about}
        rescale.metadata = own | about
        note_kind(model, kind)
        if of_words:
            model.get_layer("words").metadata = of_words


def from_checkpoint(
    source: os.PathLike | str,
    *,
    part: str | None = None,
    text: dict | None = None,
    format: str = "auto",
    head: str | None = None,
    resample: str | None = None,
    patches: str = "resize",
    grid: int | tuple[int, int] | None = None,
    sha256: str | None = None,
    metadata: dict | None = None,
    **overrides: Any,
) -> keras.Model:
    """Builds the model that a published checkpoint describes, and loads its weights.

    The tensors show width, depth, patches, MLP, grid, classes, pooling, tokens, layer scale and biases. Heads, GELU,
    epsilon and preprocessing are read from `config.json` if there is one, else they are the published ones of the
    format. The first layer's `metadata` says which, and `keras_vit.preprocess` follows it.

    Args:
        source: As in `load_weights`.
        part: Of a file with an image and a text tower (CLIP, SigLIP) or a decoder (TrOCR, BLIP): `"image"`, `"text"`,
            or `"both"`. `None` is both where a decoder writes about images, or heads find what texts name (OWL-ViT,
            OWLv2), or a decoder draws it (CLIPSeg); else the image tower. Of an autoencoder of latents (diffusers'
            `AutoencoderKL`), alone or in a folder with a DiT: `"encoder"` or `"decoder"`; `None` of such a folder is
            the DiT.
        text: Of both, arguments of `keras_vit.text_tower` or `keras_vit.text_decoder`, a dictionary, such as
            `{"num_heads": 8}`.
        format: As in `load_weights`.
        head: `"require"` or `"new"`; `None` for new only if `num_classes` is passed and differs from the source's.
        resample: As in `load_weights`.
        patches: As in `load_weights`; only matters with `patch_size`.
        grid: As in `load_weights`.
        sha256: As in `load_weights`.
        metadata: Dictionary to add to the model's metadata.
        **overrides: Arguments of `keras_vit.vit`; of a dictionary, the options in it. The weights are adapted to
            `image_size`, `channels`, `num_classes` or `patch_size`; others, such as `stochastic_depth` and `num_heads`,
            apply as they are. With `part="text"`, arguments of `keras_vit.text_tower` or `keras_vit.text_decoder`; of a
            ViLT, of `keras_vit.vilt`. Of an autoencoder `image_size` or `latent_size`, `dtype` and `name`.

    Returns:
        A model as from `keras_vit.vit`; of a ViLT as from `vilt`; for `"text"` as from `keras_vit.text_tower` or
        `keras_vit.text_decoder`, for `"both"` as from `keras_vit.two_towers`, with the file's scale and bias, or as
        from `keras_vit.captioner`. Of OWL-ViT and OWLv2 a model from `{"images", "texts"}` to a dictionary: `"boxes"`,
        `(images, patches, 4)`, top, left, bottom and right as shares of the image; `"logits"`, `(images, patches,
        texts)`; of OWLv2 `"objectness"`, logits `(images, patches)`. See `keras_vit.detect`.
        Of CLIPSeg a model from the same inputs to logits of masks, `(images, height, width, texts)`; see
        `keras_vit.segment_prompts`.
        Of an autoencoder, a model from pixels to means and logarithms of variances of latents, or from latents to
        pixels, 0 to 255; latents are scaled and shifted as the diffusion model takes them.

    Raises:
        ValueError, FileNotFoundError, ConnectionError: As `load_weights`; also if the number of heads is neither in the
            file nor published for its width.

    Warns:
        UserWarning: If published files with the same tensors compute different functions, by their GELU, heads or
            positions, or had images prepared otherwise. The warning names what was assumed. Also if the file has
            several models' weights, or tensors that are left out, such as a head of several layers.

    Example:

    >>> from_checkpoint("vit_base_patch16_224.safetensors", image_size=(384, 512), num_classes=37).output_shape
    (None, 37)
    """
    options = Options(format, head or "require", resample, patches, grid).checked(LIBRARIES)
    request = Request(source, part, head, options, overrides, metadata)
    if (own := own_file(source)) and holds(own, part):
        requested = options.changed(patches="resize") | {"text": text, "head": head, "metadata": metadata}
        return read_own(own, part, requested | overrides, sha256)
    if isinstance(part, str) and part in autoencoder.PARTS:
        return autoencoder.part_of(request, text, sha256, load)
    check_part(part, text, overrides, head=head, resample=resample, patches=patches, grid=grid)
    if part != "text":
        check_overrides(overrides)
    check_pytorch(source)
    path = fetch(source, sha256=sha256)
    if is_pipeline(path):
        return autoencoder.dit_of(path, request, load)
    with open_files(path) as files:
        autoencoder.refuse_whole(files, request)
        whole = files.writes or files.joining
        if part is None:
            check_part("both" if whole else "image", text, {}, head=head)
        if part == "both" or (part is None and whole):
            return _both(files, text, request)
        return load(files, part or "image", request)[0]


def load(files, part, request):
    """Builds the model that a part of some files describes, and fills it: every family's way, in seven steps.

    Args:
        files: Open `Files`.
        part: `"image"`, `"text"`, `"heads"` or `"masks"`.
        request: What the caller asks for, a `Request`.

    Returns:
        The model, and the `Description` of the part.

    Raises:
        ValueError: As `from_checkpoint`.
    """
    request = request._replace(overrides=checks.plain(request.overrides))
    checkpoint = files.part(part)  # 1: open
    family, form, names = family_of(checkpoint, part, request.options.format)  # 2: recognise
    description, arguments = family.describe(checkpoint, form, names, request)  # 3 and 4: describe, refuse
    # 5: match. A file that does not match costs no memory.
    steps = shapes_only(lambda: family.match(family.build(**arguments), description))
    model = family.build(**arguments)  # 6: fill
    family.note(model, description, arguments)
    fill(model, description.checkpoint, steps)
    # 7: say what was assumed.
    for remark in description.remarks:
        warn(remark)
    warn_of_assumptions(request.source, {"resample": form.resample, **arguments}, description.origins)
    warn_of_preparation(request.source, description.origins)
    return model, description


def _both(files, text, request):
    """Returns the image tower and the text tower or decoder of some files in one model."""
    overrides = request.overrides
    dtype = {"dtype": overrides["dtype"]} if "dtype" in overrides else {}
    text = dtype | (text or {})
    other, description = load(files, "text", request._replace(metadata=text.pop("metadata", None), overrides=text))
    if files.joining:
        return JOINED[files.joining](files, other, request, load)
    numbers = numbers_of(description)
    if not set(MARKS) <= set(numbers):
        if "scale" not in numbers:
            raise ValueError(
                f"Both towers need the scale of their logits. Received: {str(request.source)!r}, without one"
            )
        image, _ = load(files, "image", request._replace(head="require"))
        return two_towers(image, other, **numbers)
    whole = {"pooling": "none", "num_classes": 0, "final_norm": "before"}  # the decoder attends to all tokens
    wrong = [f"{name}={overrides[name]!r}" for name, value in whole.items() if overrides.get(name, value) != value]
    if wrong:
        raise ValueError(
            f"Of a model that writes, {', '.join(whole)} are fixed: for its image tower alone, pass part='image'. "
            f"Received: {', '.join(wrong)}"
        )
    image, _ = load(files, "image", request._replace(overrides=overrides | whole, head=None))
    return captioner(image, other, **numbers)


def _check_architecture(source, description, own):
    """Raises ValueError if what a source states, and no shape shows, is not the model's."""
    source_arguments, origins = description.arguments, description.origins
    if origins.get("num_heads") in STATED and source_arguments["num_heads"] != own["num_heads"]:
        raise ValueError(
            f"{str(source)!r} has {source_arguments['num_heads']} heads, and the model {own['num_heads']}."
        )
    unclear = isinstance(origins.get("position"), (tables.Missing, tables.Assumed))  # the caller's model decides
    names = [] if unclear else ["rotary"]
    if own["pooling"] == "map":
        names += [f"pool.{name}" for name in POOL]
    if not isinstance(origins.get("block.norm_order"), tables.Assumed):
        names.append("block.norm_order")
    source_values, model_values = (
        {name: flat(arguments)[name] for name in names} | ({} if unclear else without_weights(arguments))
        for arguments in (source_arguments, own)
    )
    if wrong := next(
        (name for name in source_values if name in model_values and source_values[name] != model_values[name]), None
    ):
        raise ValueError(
            f"{str(source)!r} has {wrong} {source_values[wrong]!r}, and the model {model_values[wrong]!r}."
        )
