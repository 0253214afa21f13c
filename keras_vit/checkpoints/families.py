"""Families of models that checkpoints describe. A family is a row."""

from collections.abc import Callable
from typing import NamedTuple

from keras_vit.checkpoints import autoencoder, dit, images, text
from keras_vit.checkpoints.build import build
from keras_vit.checkpoints.describe import FORMATS, described_alone, recognize
from keras_vit.checkpoints.formats import diffusers_autoencoder as latents
from keras_vit.checkpoints.formats import dit as dit_formats
from keras_vit.checkpoints.formats import huggingface_clipseg, huggingface_owl
from keras_vit.checkpoints.formats.decoder_config import check_pair
from keras_vit.checkpoints.match import alone, steps_for
from keras_vit.models import dit as dit_model
from keras_vit.models.autoencoder import latent_decoder, latent_encoder
from keras_vit.models.open_detector import detection_heads
from keras_vit.models.open_segmenter import mask_decoder
from keras_vit.models.text import text_tower
from keras_vit.models.text_decoder import text_decoder


class Family(NamedTuple):
    """Models that one function builds.

    - `part`: of a file, `"image"`, `"text"`, `"decoder"`, `"heads"`, `"masks"`, `"latent_encoder"` or
      `"latent_decoder"`.
    - `what`: what a file with none of the formats should be or have, for the error.
    - `formats`: the first one that detects a file's names is its format.
    - `describe(checkpoint, form, names, request)`: what the file states, a `Description`; and all arguments of `build`,
      a dictionary: what the file states, what the caller asks for, and the metadata. It raises ValueError for requests
      that the family cannot meet, and warns of nothing.
    - `build(**arguments)`: the model.
    - `match(model, description)`: the steps that fill it, as of `match.steps_for`; no array is read.
    - `note(model, description, arguments)`: writes into the model what its metadata do not say.
    """

    part: str
    what: str
    formats: tuple
    describe: Callable
    build: Callable
    match: Callable
    note: Callable = lambda model, description, arguments: None


FAMILIES = (
    Family("image", "be a DiT", dit_formats.FORMATS, dit.described, dit_model.dit, alone, dit.note),
    Family("image", "be a Vision Transformer", FORMATS, images.described, build, steps_for, images.note),
    Family("text", "have a text tower", text.TOWERS, text.described_tower, text_tower, alone),
    Family("decoder", "have a decoder", text.DECODERS, text.described_decoder, text_decoder, alone),
    Family("heads", "have heads for boxes", (huggingface_owl.FORMAT,), described_alone, detection_heads, alone),
    Family("masks", "draw masks", (huggingface_clipseg.FORMAT,), described_alone, mask_decoder, alone),
    Family("latent_encoder", autoencoder.WHAT, (latents.ENCODER,), autoencoder.described, latent_encoder, alone),
    Family("latent_decoder", autoencoder.WHAT, (latents.DECODER,), autoencoder.described, latent_decoder, alone),
)


def family_of(checkpoint, part, format):
    """Returns the `Family` of a part of a checkpoint, its `Format`, and its names as of `Format.names`.

    Args:
        checkpoint: An open `Checkpoint`.
        part: `"image"`, `"heads"`, `"masks"`, or `"text"`, which is the decoder of a file that writes.
        format: One of `describe.LIBRARIES`, or `"auto"`.

    Raises:
        ValueError: For a file of no family.
    """
    if part == "text" and checkpoint.writes:
        part = "decoder"
        check_pair(checkpoint.config)
    families = [family for family in FAMILIES if family.part == part]
    matches = (family for family in families if any(form.detect(checkpoint.shapes) for form in family.formats))
    family = next(matches, families[-1])
    return family, *recognize(checkpoint, format, family.formats, family.what)
