"""What a checkpoint says of its model: its format, the arguments of `vit`, the evaluation, and where each is from."""

import contextlib
import re
from typing import NamedTuple

from keras_vit.checkpoints.files import own
from keras_vit.checkpoints.files.read import Checkpoint
from keras_vit.checkpoints.formats import (
    google,
    huggingface,
    huggingface_aimv2,
    huggingface_beit,
    huggingface_blip,
    huggingface_clip,
    huggingface_depth,
    huggingface_dinov2,
    huggingface_dinov3,
    huggingface_eomt,
    huggingface_naflex,
    huggingface_vitpose,
    huggingface_yolos,
    keras_hub,
    openai,
    rf_detr,
    timm,
    timm_naflex,
    torchvision,
    video,
    vilt,
)
from keras_vit.checkpoints.request import Options
from keras_vit.checkpoints.tables import Assumed, Format, Missing, grid, listing
from keras_vit.layers import ConvStem, ResNetStem
from keras_vit.layers.heads.token_pool import POOL
from keras_vit.models.options import flat, merged, nested
from keras_vit.models.outputs import fitting
from keras_vit.models.vit import DEFAULTS
from keras_vit.utils.warned import warn

FORMATS = (
    google.FORMAT,
    video.AUTHORS_FORMAT,  # before those of images, whose names they have
    timm.DINO_FORMAT,
    timm.MOCO_FORMAT,
    timm.FORMAT,
    timm_naflex.FORMAT,
    timm_naflex.WITH_ATTENTION_POOLING,
    video.FORMAT,
    huggingface_eomt.FORMAT,  # before those of encoders, whose names it has
    huggingface_aimv2.FORMAT,
    huggingface_beit.FORMAT,
    huggingface_dinov3.FORMAT,
    huggingface_dinov3.WITH_GATES,
    rf_detr.FORMAT,
    huggingface_depth.DEPTH_ANYTHING,
    huggingface_depth.DPT,
    huggingface_vitpose.FORMAT,
    huggingface_dinov2.FORMAT,
    huggingface_dinov2.WITH_REGISTERS,
    huggingface_naflex.FORMAT,
    huggingface_blip.FORMAT,
    huggingface_clip.FORMAT,
    huggingface_yolos.FORMAT,
    vilt.FORMAT,
    vilt.AUTHORS_FORMAT,
    huggingface.FORMAT,
    torchvision.FORMAT,
    openai.FORMAT,
    keras_hub.FORMAT,
    keras_hub.DEIT,
    keras_hub.DINOV2_SMOOTH,
    keras_hub.DINOV2,
    own.FORMAT,
)
LIBRARIES = tuple(dict.fromkeys(form.library for form in FORMATS))
NOTES = "the file's own notes"
# Weights alone do not show these.
FUNCTION = ("block.gelu", "block.sub_norm", "block.norm_order", "norm.epsilon", "mean", "std", "pooling",
            *(f"pool.{name}" for name in POOL), "final_norm", "num_heads", "rotary")  # fmt: skip
NOTED = (*FUNCTION, "image_size")  # the notes in a file may add these
STEM = ("epsilon", "standardize")  # and these of a `ResNetStem`


class Description(NamedTuple):
    """What a checkpoint says of its model.

    `names` maps the names in the format's table to places in the file. `arguments` are those of the function that
    builds the model. `evaluation` says how the source prepares images, or of texts whose tokens it takes. `origins`
    says where the arguments that no tensor shows are from. `options` are the caller's, and `remarks` are sentences to
    warn with.
    """

    checkpoint: Checkpoint
    form: Format
    names: dict
    arguments: dict
    evaluation: dict
    origins: dict
    options: Options = Options()
    remarks: tuple = ()

    @property
    def source(self):
        """What weights are read from, and how: the checkpoint, its format, its names and the options."""
        return self.checkpoint, self.form, self.names, self.options

    @property
    def grid(self):
        """The source's patches as `(rows, columns)`, if its image size is known."""
        return grid(self.arguments) if "image_size" in self.arguments else None

    def require(self, overrides):
        """Raises ValueError for an argument that is neither in the checkpoint nor passed."""
        missing = (why for name, why in self.origins.items() if isinstance(why, Missing) and name not in overrides)
        if why := next(missing, None):
            raise ValueError(f"{why} Received: {str(self.checkpoint.path)!r}")


def recognize(checkpoint, name="auto", formats=FORMATS, what="be a Vision Transformer"):
    """Returns the `Format` of a checkpoint, and a dictionary from canonical names to places in it."""
    detected = [form for form in formats if form.detect(checkpoint.shapes)]
    form = next((form for form in detected if name in ("auto", form.library)), None)
    if form is None:
        libraries = dict.fromkeys(form.library for form in formats if form is not own.FORMAT)
        expected = ", ".join(libraries) if name == "auto" else name
        raise ValueError(
            f"{str(checkpoint.path)!r} must {what} of {expected}. "
            f"Received: a file with {listing(checkpoint.shapes) or 'no tensors'}.{checkpoint.kind()}"
        )
    return form, form.names(checkpoint.shapes)


def describe(checkpoint, name="auto"):
    """Reads a checkpoint's `Description` off its tensors, its configuration, and the notes of `save_checkpoint` first.

    Args:
        checkpoint: An open `Checkpoint`.
        name: One of `LIBRARIES`, or `"auto"`.

    Returns:
        A `Description`.

    Raises:
        ValueError: If it is not of the format, or its configuration is damaged.
    """
    return stated_by(checkpoint, *recognize(checkpoint, name))


def stated_by(checkpoint, form, names):
    """As `describe`, for a checkpoint of a known format; `names` are as of `Format.names`."""
    shapes = {name: checkpoint.shape(place) for name, place in names.items()}
    with one_error(checkpoint, form):
        arguments, evaluation, origins = form.architecture(shapes, checkpoint)
        defaults = {name: value for name, value in flat(DEFAULTS).items() if name in FUNCTION}
        arguments = merged({"tokens": {}}, nested(defaults), {"stem": None}, arguments)
        noted = checkpoint.notes.get("arguments", {})
        if noted:
            options = {k: tuple(v) if isinstance(v, list) else v for k, v in noted.items() if k in NOTED}
            arguments = merged(arguments, nested(options))
            evaluation = checkpoint.notes.get("evaluation") or evaluation
            origins = dict.fromkeys(origins, NOTES)
        if noted.get("stem") and arguments["stem"] is not None:
            arguments["stem"] = ResNetStem.from_config({**arguments["stem"].get_config(), **noted["stem"]})
        evaluation = dict(evaluation)
        place = next((str(names[name]) for name in ("head.weight", "classifier.weight") if name in names), "")
        if arguments.get("num_classes") and re.search(r"\.[1-9]\d*\.weight$", place):
            origins = origins | {"num_classes": Assumed(f"dropout before {place}; an activation has no tensors either")}
        if checkpoint.passed_over:
            origins = origins | {"text": f"passed over: {checkpoint.passed_over} tensors beside the image tower"}
    return Description(checkpoint, form, names, arguments, evaluation, origins, remarks=tuple(checkpoint.remarks))


@contextlib.contextmanager
def one_error(checkpoint, form):
    """Turns what a damaged configuration raises into one clear ValueError, and names the kind in each."""
    try:
        yield
    except ValueError as error:
        kind = checkpoint.kind()
        if not kind or type(error) is not ValueError or _kind_is_said(checkpoint.config, error):
            raise
        raise ValueError(f"{error}{'' if str(error).endswith('.') else '.'}{kind}") from None
    except (AttributeError, IndexError, KeyError, TypeError, ZeroDivisionError) as error:
        raise ValueError(
            f"The configuration of {str(checkpoint.path)!r} does not describe a model of {form.name}: {error}"
        ) from None


def _kind_is_said(config, error):
    """Returns whether an error has the kind of model that a configuration states."""
    kinds = [config.get(name) for name in ("model_type", "architecture")]
    return any(isinstance(kind, str) and kind in str(error) for kind in kinds)


def class_names(checkpoint, count):
    """Returns a source's class names as `{"labels": [...]}`, or `{}` if it has none.

    From `save_checkpoint`'s notes, transformers' `id2label` or timm's `label_names`, once `labels`.
    """
    candidates = (checkpoint.config.get(key) for key in ("label_names", "id2label", "labels"))
    names = checkpoint.notes.get("labels") or next(filter(None, candidates), ())
    labels = list(names.values() if isinstance(names, dict) else names)
    if isinstance(names, dict):
        names = [names.get(str(i)) for i in range(count or 0)]
    names = fitting(names, count)
    if labels and "LABEL_0" not in labels and count and names is None:
        warn(
            f"The class names of {str(checkpoint.path)!r} are left out: there must be a text for each of {count} "
            f"outputs. Received: {labels!r:.100}"
        )
    return {"labels": names} if names and names[0] != "LABEL_0" else {}


def own_notes(checkpoint, *names):
    """Returns what the metadata in Keras's own file says of its weights, such as their `"license"`."""
    return {name: checkpoint.notes[name] for name in names if checkpoint.notes.get(name)}


def of_stem(stem):
    """Returns the options of a `ResNetStem` that its weights do not show."""
    return {f"the stem's {name}": getattr(stem, name) for name in STEM} if isinstance(stem, ResNetStem) else {}


def without_weights(arguments):
    """Returns what a model computes without weights of its own: its fixed positions, and its stem's strides."""
    position, stem = arguments.get("position", "learned"), arguments.get("stem")
    facts = {"stem's strides": stem.steps} if isinstance(stem, ConvStem) else {}
    maps = {name: value for name, value in (arguments.get("maps") or {}).items() if name != "names"}
    facts |= {"the head's": maps} if maps else {}
    return facts | ({} if position == "learned" else {"position": position})


def described_alone(checkpoint, form, names, request):
    """Returns the `Description` of a part on towers, and all arguments of its builder; see `families.Family`."""
    shapes = {name: checkpoint.shape(place) for name, place in names.items()}
    with one_error(checkpoint, form):
        arguments, evaluation, origins = form.architecture(shapes, checkpoint)
    arguments = {**arguments, **request.overrides}
    known = {"num_heads": None, **arguments}
    return Description(checkpoint, form, names, known, evaluation, origins), arguments
