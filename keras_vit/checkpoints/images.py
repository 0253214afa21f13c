"""The family of image models: what a file and the caller say, brought together. Of clips and of questions too."""

from keras_vit.checkpoints import adapt
from keras_vit.checkpoints.build import check_overrides, full_size, model_arguments
from keras_vit.checkpoints.describe import class_names, own_notes, stated_by
from keras_vit.checkpoints.files.own import HEAD_METADATA
from keras_vit.checkpoints.heads import encoder_alone, kind_of, note_kind, of_other_heads
from keras_vit.models.options import flat
from keras_vit.models.vilt import WORDS_METADATA
from keras_vit.utils import checks
from keras_vit.utils.warned import warn

# Arguments under which a model gives the same logits; of another number of classes, the head is new anyway.
STAY = {"name", "dtype", "trainable", "dropout", "attention_dropout", "stochastic_depth", "num_classes"}


def described(checkpoint, form, names, request):
    """Returns the `Description` of an image model and all arguments of `build`; see `families.Family`."""
    overrides, options = request.overrides, request.options
    description = encoder_alone(stated_by(checkpoint, form, names), overrides, request.head)
    source_arguments = description.arguments
    if size := source_arguments.pop("runs_at", None):  # where that is not the size of the table of positions
        overrides = {"image_size": size, **overrides}
    check_overrides(overrides, source_arguments)
    if (
        overrides.get("num_classes")
        and not source_arguments["num_classes"]
        and source_arguments.get("pooling") == "none"
    ):
        overrides = {"pooling": "gap", **overrides}  # of a segmenter: a classifier needs one vector
    remarks = description.remarks + of_other_heads(request.source, description, request.head, overrides)
    if request.head is None and overrides.get("num_classes") not in (None, 0, source_arguments["num_classes"]):
        options = options._replace(head="new")
    description = description._replace(remarks=remarks, options=options)
    arguments = model_arguments(description, overrides)
    _adapt(description, arguments, overrides)
    about = metadata_of(description, request.source, arguments["num_classes"])
    _forget_unknown(about, flat(overrides), source_arguments)
    about |= request.metadata or {}
    arguments["metadata"] = about | {"evaluation": description.evaluation | about["evaluation"]}
    return description, arguments


def _forget_unknown(about, overrides, source_arguments):
    """Takes the rule for unknown images out of the metadata of weights, if the model will compute other logits."""
    same = flat(source_arguments)
    changed = [name for name, value in overrides.items() if name not in STAY and not _equal(value, same.get(name))]
    if changed and about.pop("unknown", None) and overrides.get("num_classes") != 0:
        warn(
            "The rule for unknown images is left out: it was set for the model as the file has it. Calibrate this one. "
            f"Received: {', '.join(changed)}"
        )


def _equal(value, other):
    """Returns whether a caller's argument is the one that a file has, which may have a pair for one number."""
    return repr(other) in (repr(value), repr((value, value)))


def note(model, description, arguments):
    """Writes the kind of a classifier's output into the model's metadata."""
    note_kind(model, kind_of(description.checkpoint, arguments["num_classes"], description.options))


def adapt_to(description, own):
    """Brings what a source states to the channels and the image size of a model with these arguments."""
    source_arguments = description.arguments
    for name in ("mean", "std"):
        source_arguments[name] = adapt.statistics(source_arguments[name], own["channels"])
    if (
        "image_size" in source_arguments
        and checks.pair("image_size", source_arguments["image_size"]) != own["image_size"]
    ):
        description.evaluation.pop("full_size", None)


def _adapt(description, arguments, overrides):
    """Brings what a source states to the model that the caller asks for: where arguments are from, and its image size.

    `model_arguments` has brought mean and deviation to its channels.
    """
    origins, evaluation = description.origins, description.evaluation
    origins |= dict.fromkeys(set(origins) & set(flat(overrides)), "given")
    if description.options.resample or "image_size" not in overrides:
        origins.pop("resample", None)  # only positions on another grid depend on the method
    if "image_size" in overrides:
        evaluation.pop("full_size", None)
    else:
        evaluation |= full_size(description.arguments, arguments)


def metadata_of(description, source, num_classes):
    """Returns the metadata of loaded weights: where they are from, how to prepare images, and who says so."""
    checkpoint = description.checkpoint
    about = {"source": str(source), "format": description.form.name}
    about |= {"evaluation": description.evaluation, "from": description.origins}
    if description.options.head == "require":
        maps = description.arguments.get("maps") or {}
        named = {"labels": list(maps["names"])} if maps.get("names") else {}
        if "names" not in maps:
            named = class_names(checkpoint, num_classes or maps.get("keypoints") or maps.get("units"))
        about |= named | own_notes(checkpoint, *HEAD_METADATA)
    return about | own_notes(checkpoint, "name", "license", *WORDS_METADATA)
