"""The family of autoencoders of latents: what a file and the caller say, brought together."""

import os
import pathlib
from typing import NamedTuple

from keras_vit.checkpoints.describe import Description, class_names, one_error, recognize
from keras_vit.checkpoints.files import pipeline, settings
from keras_vit.checkpoints.files.fetch import fetch
from keras_vit.checkpoints.files.pytorch import check_pytorch
from keras_vit.checkpoints.files.read import open_files
from keras_vit.checkpoints.files.wrapped import FIRST
from keras_vit.checkpoints.formats.diffusers_autoencoder import ENCODER
from keras_vit.checkpoints.location import location
from keras_vit.checkpoints.own_autoencoder import own_part, own_sizes
from keras_vit.checkpoints.own_models import own_file
from keras_vit.models import schedules
from keras_vit.models.autoencoder import AUTOENCODER
from keras_vit.utils import checks
from keras_vit.utils.by_file import cached

WHAT = "be an autoencoder of latents, AutoencoderKL,"
PARTS = {"encoder": "latent_encoder", "decoder": "latent_decoder"}  # what a caller asks for, and the part of the files
ARGUMENTS = ("image_size", "latent_size", "groups", "scaling_factor", "shift_factor", "name", "dtype")


def part_of(request, text, sha256, load):
    """Returns the encoder or decoder of an autoencoder: of a file of its own, or of a folder with a DiT too.

    Args:
        request: What the caller asks for, a `Request` with `part` `"encoder"` or `"decoder"`.
        text: As in `from_checkpoint`; it must be `None`.
        sha256: As in `from_checkpoint`.
        load: `load.load`.

    Raises:
        ValueError, FileNotFoundError, ConnectionError: As `from_checkpoint`.
    """
    options = request.options.changed(patches="resize")
    options |= {name: value for name, value in {"text": text, "head": request.head}.items() if value is not None}
    if options:
        received = ", ".join(f"{name}={value!r}" for name, value in options.items())
        raise ValueError(f"An autoencoder is loaded as it was saved. Received: part={request.part!r}, {received}")
    if own := own_file(request.source):
        return own_part(own, request, sha256)
    checks.options("overrides", request.overrides, ARGUMENTS)
    with open_files(_place(request.source, request.part, sha256)) as files:
        return load(files, PARTS[request.part], request)[0]


def _place(source, part, sha256=None):
    """Returns the file or folder of an autoencoder, downloaded if needed."""
    check_pytorch(source)
    path = fetch(source, sha256=sha256, part=part)
    return pathlib.Path(path, *pipeline.folders(path, part, source)) if pipeline.is_pipeline(path) else path


class Sizes(NamedTuple):
    """Sizes of an autoencoder: how many times larger images are than latents, channels of both, and the scale.

    The scale is `(scaling_factor, shift_factor)`.
    """

    factor: int
    channels: int
    latent_channels: int
    scale: tuple[float, float]


@cached(4)
def sizes_of(source):
    """Returns the `Sizes` of an autoencoder, by the names and shapes in its files; errors as of `from_checkpoint`."""
    if own := own_file(source := _located(source)):
        return Sizes(*own_sizes(own))
    with open_files(_place(source, "encoder")) as files:
        checkpoint = files.part(PARTS["encoder"])
        form, names = recognize(checkpoint, "auto", (ENCODER,), WHAT)
        arguments, *_ = form.architecture({name: checkpoint.shape(place) for name, place in names.items()}, checkpoint)
    scale = arguments.get("scaling_factor"), arguments.get("shift_factor", 0.0)
    return Sizes(2 ** (len(arguments["widths"]) - 1), arguments["channels"], arguments["latent_channels"], scale)


def dit_of(folder, request, load):
    """Returns the DiT of a folder that has its autoencoder too; its metadata say where that is, and of what noise.

    Args:
        folder: The folder, a path.
        request: What the caller asks for, a `Request`.
        load: `load.load`.

    Raises:
        ValueError: As `from_checkpoint`.
    """
    folder = pathlib.Path(folder)
    model, _ = pipeline.folders(folder, request.part, request.source)
    names, about = _about(folder, request.source)
    with open_files(folder / model) as files:
        checkpoint = files.part()
        count = checkpoint.config.get("num_embeds_ada_norm")
        labels = class_names(checkpoint._replace(config=names), count)
        return load(files, "image", request._replace(metadata=about | labels | (request.metadata or {})))[0]


def _about(folder, source):
    """Returns what a DiT's folder says of it: names of classes, as in a configuration; its noise and autoencoder."""
    path = folder / pipeline.NOISE / pipeline.SCHEDULER
    if not path.is_file():
        raise ValueError(
            f"A {pipeline.DRAWS} needs the settings of its noise. Received: {str(source)!r}, without {path.name}"
        )
    with settings.one_error(path):
        schedule = schedules.stated(settings.read_json(path))
    names = settings.read_json(folder / pipeline.INDEX).get("id2label")
    labels = {} if not isinstance(names, dict) else {"id2label": names}
    return labels, {schedules.SCHEDULE: schedule, AUTOENCODER: address(source)}


def address(source):
    """Returns where an autoencoder is, as it is written into the metadata of a DiT.

    That is a whole path, or an address, or the name of weights that ship.
    """
    path = pathlib.Path(os.path.expanduser(source))
    named = "://" in str(source) or (not path.exists() and _located(source) != source)
    return str(source) if named else str(path.resolve())


def _located(source):
    """Returns the path of weights that ship, for their name; any other source as it is."""
    return location(source) or source


def refuse_whole(files, request):
    """Raises ValueError if a file is an autoencoder and the caller asks for no part of it."""
    if files.encodes and request.part in (None, "image") and not any(map(FIRST.fullmatch, files.shapes)):
        raise ValueError(
            "Of an autoencoder, a part is loaded: part='decoder', from latents to images, or part='encoder'. "
            f"Received: part={request.part!r} for {str(request.source)!r}"
        )


def described(checkpoint, form, names, request):
    """Returns the `Description` of a part and all arguments of its builder; see `families.Family`."""
    shapes = {name: checkpoint.shape(place) for name, place in names.items()}
    with one_error(checkpoint, form):
        source_arguments, _, origins = form.architecture(shapes, checkpoint)
    overrides = request.overrides
    if "latent_size" in overrides:
        source_arguments.pop("image_size", None)
    arguments = {**source_arguments, **overrides}
    if not {"image_size", "latent_size"} & set(arguments):
        raise ValueError(f"No setting says the size of the images: pass image_size. Received: {str(request.source)!r}")
    description = Description(
        checkpoint, form, names, {"num_heads": 1, **arguments}, {}, origins, remarks=tuple(checkpoint.remarks)
    )
    description.require(overrides)
    about = {"source": str(request.source), "format": form.name, "from": dict(origins), **(request.metadata or {})}
    return description, arguments | {"metadata": about}
