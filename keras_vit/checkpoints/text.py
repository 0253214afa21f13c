"""The families of text towers and decoders: what a file and the caller say, brought together."""

import inspect

import numpy as np

from keras_vit.checkpoints.describe import Description, one_error
from keras_vit.checkpoints.formats import (
    google_text,
    huggingface_blip,
    huggingface_gpt2,
    huggingface_text,
    huggingface_trocr,
    openai_text,
)
from keras_vit.checkpoints.formats.decoder_config import otherwise, written_by
from keras_vit.models.captioner import MARKS
from keras_vit.models.text import text_tower
from keras_vit.models.text_decoder import text_decoder
from keras_vit.utils import checks
from keras_vit.utils.warned import warn

TOWERS = (huggingface_text.FORMAT, openai_text.FORMAT, google_text.FORMAT)
DECODERS = (huggingface_gpt2.FORMAT, huggingface_trocr.FORMAT, huggingface_blip.TEXT_FORMAT)
ARGUMENTS = {build: tuple(inspect.signature(build).parameters) for build in (text_tower, text_decoder)}
KNOWN = tuple(dict.fromkeys(name for names in ARGUMENTS.values() for name in names))
HEAD, TABLE = "head/kernel", "words/word_embedding"  # of decoders, as rows name them
SIMILARITY = {"scale": "logit_scale", "bias": "logit_bias"}  # arguments of `two_towers`, and names in `names`
IMAGE_ONLY = {"head": None, "resample": None, "patches": "resize", "grid": None}  # and their defaults


def check_part(part, text, overrides, **of_image):
    """Raises ValueError for arguments of `from_checkpoint` that do not belong to the part."""
    checks.one_of("part", part, (None, "image", "text", "both", "encoder", "decoder"))
    received = [f"{name}={value!r}" for name, value in of_image.items() if value != IMAGE_ONLY[name]]
    if part == "text" and received:
        raise ValueError(f"A text tower has no {', '.join(of_image)}. Received: part='text', {', '.join(received)}")
    if part == "both" and (of_image["head"] == "new" or "num_classes" in overrides):
        received = "head='new'" if of_image["head"] == "new" else f"num_classes={overrides['num_classes']!r}"
        raise ValueError(
            f"Both towers need the file's head, which brings images to the texts' space. Received: {received}"
        )
    if text is not None and part not in (None, "both"):
        raise ValueError(f"`text` is for part='both'. Received: part={part!r}, text={checks.shown(text)}")
    if text is not None:
        checks.options("text", text, KNOWN)
    if part == "text":
        checks.options("overrides", overrides, KNOWN)


def described_tower(checkpoint, form, names, request):
    """Returns the `Description` of a text tower and all arguments of `text_tower`; see `families.Family`."""
    return _described(checkpoint, form, names, request, text_tower)


def described_decoder(checkpoint, form, names, request):
    """Returns the `Description` of a decoder and all arguments of `text_decoder`; see `families.Family`."""
    description, arguments = _described(checkpoint, form, names, request, text_decoder)
    length, ways = written_by(checkpoint.config)
    arguments["metadata"] |= {"length": length} if length and "length" not in (request.metadata or {}) else {}
    remark = (f"{str(checkpoint.path)!r}: {otherwise(ways)}",) if ways else ()
    return description._replace(remarks=description.remarks + remark), arguments


def _described(checkpoint, form, names, request, build):
    overrides = request.overrides
    checks.options("overrides", overrides, ARGUMENTS[build])
    shapes = {name: checkpoint.shape(place) for name, place in names.items()}
    with one_error(checkpoint, form):
        source_arguments, tokens, origins = form.architecture(shapes, checkpoint)
        if "tied" in source_arguments:
            source_arguments["tied"] = _ties(source_arguments["tied"], form, names, checkpoint)
    if overrides.get("pooling", "end") != "end":
        source_arguments.pop("end", None)
    arguments = {**source_arguments, **overrides}
    description = Description(checkpoint, form, names, arguments, tokens, origins, remarks=tuple(checkpoint.remarks))
    description.require(overrides)
    origins |= dict.fromkeys(set(origins) & set(overrides), "given")
    about = {"source": str(request.source), "format": form.name, "from": origins, **tokens}
    return description, arguments | {"metadata": about | (request.metadata or {})}


def numbers_of(description):
    """Returns what a text tower's or a decoder's file has for a model of both parts.

    The arguments of `two_towers` besides the towers, or those of `captioner`: a dictionary.
    """
    checkpoint, names = description.checkpoint, description.names
    numbers = {name: _number(checkpoint, names[of]) for name, of in SIMILARITY.items() if of in names}
    return numbers | {mark: description.evaluation[mark] for mark in MARKS if mark in description.evaluation}


def _ties(tied, form, names, checkpoint):
    """Returns whether the logits' matrix is the table of words: as in transformers 5, one that differs is not.

    `tied` is what the settings say, which decide where the file has no matrix of its own.
    """
    names_of = {row.ours: row.theirs for row in form.rows}
    if names_of[HEAD] not in names:
        return tied
    own, table = (checkpoint.array(names[names_of[path]]) for path in (HEAD, TABLE))
    alike = np.array_equal(own, table)
    if tied and not alike:
        warn(
            f"{str(checkpoint.path)!r}: its settings say that the matrix of the logits is the table of words, and it "
            "has another: this one is taken, as by transformers 5."
        )
    return alike


def _number(checkpoint, place):
    """Returns the number in a tensor; raises ValueError unless it has one."""
    array = checkpoint.array(place)
    if array.size != 1:
        raise ValueError(f"{place} of {str(checkpoint.path)!r} must be one number. Received: shape={array.shape}")
    return float(array.item())
