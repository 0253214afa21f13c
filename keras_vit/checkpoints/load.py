"""Loads a checkpoint of any format: into a model, or as the model that the file describes."""

import os
from typing import Any

import keras

from keras_vit.checkpoints import adapt, tables
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.build import build, check_overrides, full_size, model_arguments
from keras_vit.checkpoints.describe import NOTES, class_names, describe, own_notes, without_weights
from keras_vit.checkpoints.dit import is_dit_file, read_dit
from keras_vit.checkpoints.files.fetch import fetch
from keras_vit.checkpoints.files.own import OF_HEAD, SAVED
from keras_vit.checkpoints.files.pytorch import check_pytorch
from keras_vit.checkpoints.files.read import open_checkpoint
from keras_vit.checkpoints.heads import check_head, encoder_alone, kind_of, note_kind, of_other_heads
from keras_vit.checkpoints.match import Options, fill, steps_for
from keras_vit.checkpoints.own_models import changed, holds, load_own, own_file, read_own
from keras_vit.checkpoints.remarks import warn_of_assumptions, warn_of_differences, warn_of_preparation
from keras_vit.checkpoints.text import check_part, read_text
from keras_vit.layers import Rescale
from keras_vit.layers.heads.token_pool import POOL
from keras_vit.models.backbone import check_plain, has_towers
from keras_vit.models.captioner import MARKS, captioner, is_captioner
from keras_vit.models.dit import is_dit
from keras_vit.models.options import flat
from keras_vit.models.two_towers import two_towers
from keras_vit.models.vilt import OF_WORDS
from keras_vit.utils import checks
from keras_vit.utils.keras_private import shapes_only
from keras_vit.utils.warned import warn

OF_WEIGHTS = ("labels", "name", "license", *OF_HEAD)  # metadata that belongs to the weights, not to the model
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
            names), `"keras"` (this package's own), or `"auto"` to detect it by the tensors' names.
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
    options = Options(format, head, resample, patches, grid).checked()
    if has_towers(model) or is_captioner(model) or is_dit(model):
        return load_own(model, source, changed(options, Options()), sha256)
    own = arguments_of(model, words=True)
    check_plain(model, "Loading a checkpoint", lora=False)
    check_pytorch(source)
    with open_checkpoint(fetch(source, sha256=sha256)) as checkpoint:
        description, remarks = describe(checkpoint, format), checkpoint.remarks
        _check_architecture(source, description, own)
        check_head(model, checkpoint, description, own, options)
        _adapt(description, own)
        metadata = _metadata(source, checkpoint, description, own["num_classes"], options)
        kind = kind_of(checkpoint, own["num_classes"], options)
        fill(model, checkpoint, _match(model, checkpoint, description, options))
    if isinstance(rescale := model.get_layer("rescale"), Rescale):
        kept = {name: value for name, value in rescale.metadata.items() if name not in OF_WEIGHTS}
        of_words = {name: metadata.pop(name) for name in OF_WORDS if name in metadata}
        rescale.metadata = kept | metadata
        note_kind(model, kind)
        if of_words:
            model.get_layer("words").metadata = of_words
    for remark in remarks:
        warn(remark)
    warn_of_differences(source, description.arguments, own, description.origins)
    warn_of_preparation(source, description.origins)
    return model


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
            or `"both"`. `None` is both where a decoder writes about images, else the image tower.
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
            ViLT, of `keras_vit.vilt`.

    Returns:
        A model as from `keras_vit.vit`; of a ViLT as from `vilt`; for `"text"` as from `keras_vit.text_tower` or
        `keras_vit.text_decoder`, for `"both"` as from `keras_vit.two_towers`, with the file's scale and bias, or as
        from `keras_vit.captioner`.

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
    options = Options(format, head or "require", resample, patches, grid).checked()
    if (own := own_file(source)) and holds(own, part):
        given = changed(options, Options(patches="resize")) | {"text": text, "head": head, "metadata": metadata}
        return read_own(own, part, given | overrides, sha256)
    check_part(part, text, overrides, head=head, resample=resample, patches=patches, grid=grid)
    if part != "text":
        check_overrides(overrides)
    check_pytorch(source)
    if part == "text":
        return read_text(source, format, sha256, {**overrides, "metadata": metadata})[0]
    given = {"format": format, "resample": resample, "patches": patches, "grid": grid, "sha256": sha256}
    if part == "both":
        return _joined(source, text, given | {"metadata": metadata}, overrides)
    overrides = checks.plain(overrides)
    with open_checkpoint(fetch(source, sha256=sha256)) as checkpoint:
        if part is None:
            check_part("both" if checkpoint.writes else "image", text, {}, head=head)
        if is_dit_file(checkpoint):
            given = changed(options, Options(patches="resize")) | ({} if part is None else {"part": part})
            return read_dit(checkpoint, source, given, overrides, metadata)
        if part is None and checkpoint.writes:
            return _joined(source, text, given | {"metadata": metadata}, overrides)
        description = encoder_alone(describe(checkpoint, format), overrides, head)
        stated = description.arguments
        check_overrides(overrides, stated)
        if overrides.get("num_classes") and not stated["num_classes"] and stated.get("pooling") == "none":
            overrides = {"pooling": "gap", **overrides}  # of a segmenter: a classifier needs one vector
        remarks = checkpoint.remarks + of_other_heads(source, description, head, overrides)
        arguments = model_arguments(description, checkpoint, options.grid, overrides)
        if head is None and overrides.get("num_classes") not in (None, 0, stated["num_classes"]):
            options = options._replace(head="new")
        _adapt_to_overrides(description, arguments, overrides, options)
        about = _metadata(source, checkpoint, description, arguments["num_classes"], options) | (metadata or {})
        arguments["metadata"] = about | {"evaluation": description.evaluation | about["evaluation"]}
        # A file that does not match costs no memory.
        steps = shapes_only(lambda: _match(build(arguments), checkpoint, description, options))
        model = build(arguments)
        note_kind(model, kind_of(checkpoint, arguments["num_classes"], options))
        fill(model, checkpoint, steps)
    for remark in remarks:
        warn(remark)
    warn_of_assumptions(source, {"resample": description.form.resample, **arguments}, description.origins)
    warn_of_preparation(source, description.origins)
    return model


def _joined(source, text, given, overrides):
    """Returns a file's image tower and its text tower or decoder in one model; arguments as in `from_checkpoint`."""
    dtype = {"dtype": overrides["dtype"]} if "dtype" in overrides else {}
    other, numbers = read_text(source, given["format"], given["sha256"], dtype | (text or {}))
    if set(MARKS) <= set(numbers):
        whole = {"pooling": "none", "num_classes": 0, "final_norm": "before"}  # the decoder attends to all tokens
        wrong = [f"{name}={overrides[name]!r}" for name, value in whole.items() if overrides.get(name, value) != value]
        if wrong:
            raise ValueError(
                f"Of a model that writes, {', '.join(whole)} are fixed: for its image tower alone, pass part='image'. "
                f"Received: {', '.join(wrong)}"
            )
        return captioner(from_checkpoint(source, part="image", **given, **(overrides | whole)), other, **numbers)
    if "scale" not in numbers:
        raise ValueError(f"Both towers need the scale of their logits. Received: {str(source)!r}, without one")
    return two_towers(from_checkpoint(source, part="image", head="require", **given, **overrides), other, **numbers)


def _check_architecture(source, description, own):
    """Raises ValueError if what a source states, and no shape shows, is not the model's."""
    stated, origins = description.arguments, description.origins
    if origins.get("num_heads") in STATED and stated["num_heads"] != own["num_heads"]:
        raise ValueError(f"{str(source)!r} has {stated['num_heads']} heads, and the model {own['num_heads']}.")
    unclear = isinstance(origins.get("position"), (tables.Missing, tables.Assumed))  # the caller's model decides
    clear = ["rotary"] * (not unclear) + [f"pool.{name}" for name in POOL] * (own["pooling"] == "map")
    clear += ["block.norm_order"] * (not isinstance(origins.get("block.norm_order"), tables.Assumed))
    theirs, ours = (
        {name: flat(arguments)[name] for name in clear} | ({} if unclear else without_weights(arguments))
        for arguments in (stated, own)
    )
    if wrong := next((name for name in theirs if name in ours and theirs[name] != ours[name]), None):
        raise ValueError(f"{str(source)!r} has {wrong} {theirs[wrong]!r}, and the model {ours[wrong]!r}.")


def _adapt(description, own):
    """Brings what a source states to the channels and the image size of a model."""
    stated = description.arguments
    for name in ("mean", "std"):
        stated[name] = adapt.statistics(stated[name], own["channels"])
    if "image_size" in stated and checks.pair("image_size", stated["image_size"]) != own["image_size"]:
        description.evaluation.pop("full_size", None)


def _adapt_to_overrides(description, arguments, overrides, options):
    """Brings what a source states to the model that the caller asks for: where arguments are from, and its image size.

    `model_arguments` has brought mean and deviation to its channels.
    """
    origins, evaluation = description.origins, description.evaluation
    origins |= dict.fromkeys(set(origins) & set(flat(overrides)), "given")
    if options.resample or "image_size" not in overrides:  # only positions on another grid depend on the method
        origins.pop("resample", None)
    if "image_size" in overrides:
        evaluation.pop("full_size", None)
    else:
        evaluation |= full_size(description.arguments, arguments)


def _match(model, checkpoint, description, options):
    """Returns the steps that fill a model; ValueError if a weight or a tensor is left over, or a shape differs."""
    class_position = description.arguments["tokens"].get("class_position")
    form, names = description.form, description.names
    return steps_for(model, checkpoint, form, names, options, description.grid, class_position)


def _metadata(source, checkpoint, description, num_classes, options):
    """Returns the metadata of loaded weights: where they are from, how to prepare images, and who says so."""
    form, _, _, evaluation, origins = description
    about = {"source": str(source), "format": form.name, "evaluation": evaluation, "from": origins}
    if options.head == "require":
        keypoints = (description.arguments.get("maps") or {}).get("keypoints")
        about |= class_names(checkpoint, num_classes or keypoints) | own_notes(checkpoint, *OF_HEAD)
    return about | own_notes(checkpoint, "name", "license", *OF_WORDS)
