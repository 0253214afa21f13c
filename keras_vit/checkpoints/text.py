"""Builds the text tower or decoder that a checkpoint describes, and loads its weights."""

import inspect

import numpy as np

from keras_vit.checkpoints.describe import one_error, recognize
from keras_vit.checkpoints.files.fetch import fetch
from keras_vit.checkpoints.files.read import open_checkpoint
from keras_vit.checkpoints.formats import (
    google_text,
    huggingface_blip,
    huggingface_gpt2,
    huggingface_text,
    huggingface_trocr,
    openai_text,
)
from keras_vit.checkpoints.formats.decoder_config import check_pair, otherwise, written_by
from keras_vit.checkpoints.match import Options, fill, matched
from keras_vit.checkpoints.remarks import warn_of_assumptions
from keras_vit.checkpoints.tables import Missing
from keras_vit.models.captioner import MARKS
from keras_vit.models.text import text_tower
from keras_vit.models.text_decoder import text_decoder
from keras_vit.utils import checks
from keras_vit.utils.keras_private import shapes_only
from keras_vit.utils.warned import warn

TOWERS = (huggingface_text.FORMAT, openai_text.FORMAT, google_text.FORMAT)
DECODERS = (huggingface_gpt2.FORMAT, huggingface_trocr.FORMAT, huggingface_blip.OF_TEXT)
ARGUMENTS = {build: tuple(inspect.signature(build).parameters) for build in (text_tower, text_decoder)}
KNOWN = tuple(dict.fromkeys(name for names in ARGUMENTS.values() for name in names))
HEAD, TABLE = "head/kernel", "words/word_embedding"  # of decoders, as rows name them
SIMILARITY = {"scale": "logit_scale", "bias": "logit_bias"}  # arguments of `two_towers`, and names in `names`
IMAGE_ONLY = {"head": None, "resample": None, "patches": "resize", "grid": None}  # and their defaults


def check_part(part, text, overrides, **of_image):
    """Raises ValueError for arguments of `from_checkpoint` that do not belong to the part."""
    checks.one_of("part", part, (None, "image", "text", "both"))
    given = [f"{name}={value!r}" for name, value in of_image.items() if value != IMAGE_ONLY[name]]
    if part == "text" and given:
        raise ValueError(f"A text tower has no {', '.join(of_image)}. Received: part='text', {', '.join(given)}")
    if part == "both" and (of_image["head"] == "new" or "num_classes" in overrides):
        given = "head='new'" if of_image["head"] == "new" else f"num_classes={overrides['num_classes']!r}"
        raise ValueError(
            f"Both towers need the file's head, which brings images to the texts' space. Received: {given}"
        )
    if text is not None and part not in (None, "both"):
        raise ValueError(f"`text` is for part='both'. Received: part={part!r}, text={checks.shown(text)}")
    if text is not None:
        checks.options("text", text, KNOWN)
    if part == "text":
        checks.options("overrides", overrides, KNOWN)


def read_text(source, format, sha256, overrides):
    """Builds the text tower or decoder that a checkpoint describes, and loads its weights.

    Args:
        source: As in `from_checkpoint`.
        format: As in `from_checkpoint`.
        sha256: As in `from_checkpoint`.
        overrides: Arguments of `text_tower` or `text_decoder` that the caller passed.

    Returns:
        A model as from `text_tower`, and the arguments of `two_towers` that the file has; or one as from
        `text_decoder`, and the arguments of `captioner`.

    Raises:
        ValueError: If the file has neither, or one that these do not build.
    """
    overrides = checks.plain(overrides)
    with open_checkpoint(fetch(source, sha256=sha256), part="text") as checkpoint:
        if checkpoint.writes:
            check_pair(checkpoint.config)
        form, names = recognize(checkpoint, format, DECODERS if checkpoint.writes else TOWERS, "have a text tower")
        build = text_decoder if form in DECODERS else text_tower
        checks.options("overrides", overrides, ARGUMENTS[build])
        shapes = {name: checkpoint.shape(place) for name, place in names.items()}
        with one_error(checkpoint, form):
            stated, tokens, origins = form.architecture(shapes, checkpoint)
            if "tied" in stated:
                stated["tied"] = _ties(stated["tied"], form, names, checkpoint)
        ways = {}
        if form in DECODERS:
            length, ways = written_by(checkpoint.config)
            tokens |= {"length": length} if length else {}
        missing = [why for name, why in origins.items() if isinstance(why, Missing) and name not in overrides]
        if missing:
            raise ValueError(f"{missing[0]} Received: {str(checkpoint.path)!r}")
        origins |= dict.fromkeys(set(origins) & set(overrides), "given")
        if overrides.get("pooling", "end") != "end":
            stated.pop("end", None)
        about = {"source": str(source), "format": form.name, "from": origins, **tokens}
        arguments = {**stated, **overrides, "metadata": about | (overrides.get("metadata") or {})}
        layers = {"num_heads": arguments["num_heads"], "num_classes": None, "stem": None, "pooling": None}

        def match(model):
            return matched(model, layers, checkpoint, form, names, Options())

        steps = shapes_only(lambda: match(build(**arguments)))  # a file that does not match costs no memory
        model = build(**arguments)
        fill(model, checkpoint, steps)
        numbers = {name: _number(checkpoint, names[of]) for name, of in SIMILARITY.items() if of in names}
        numbers |= {mark: tokens[mark] for mark in MARKS if mark in tokens}
    for remark in checkpoint.remarks:
        warn(remark)
    if ways:
        warn(f"{str(checkpoint.path)!r}: {otherwise(ways)}")
    warn_of_assumptions(source, arguments, origins)
    return model, numbers


def _ties(stated, form, names, checkpoint):
    """Returns whether the logits' matrix is the table of words: as in transformers 5, one that differs is not.

    `stated` is what the settings say, which decide where the file has no matrix of its own.
    """
    theirs = {row.ours: row.theirs for row in form.rows}
    if theirs[HEAD] not in names:
        return stated
    own, table = (checkpoint.array(names[theirs[ours]]) for ours in (HEAD, TABLE))
    alike = np.array_equal(own, table)
    if stated and not alike:
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
