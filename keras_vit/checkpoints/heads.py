"""Whether the head of a checkpoint is the one that a model asks for."""

import re

from keras_vit.checkpoints import tables
from keras_vit.models.kinds import GIVES, note

# The projection of an image tower into the space of texts: CLIP's, BLIP's, OpenCLIP's.
TEXT_PROJECTION = re.compile(
    r"(.*\.)?(visual_projection\.weight|vision_proj\.weight|head\.proj(\.weight)?)|(visual\.)?proj"
)
# DINO's and iBOT's heads; OpenCLIP's projection of two layers is `head.mlp.fc1` and `fc2`.
PRETRAINING_HEAD = re.compile(r"pre_logits[./]|head\.(mlp2?(?!\.fc)|last_layer2?|last_norm2?)\.")


def check_head(model, description, own):
    """Raises ValueError if a classifier's head would be loaded into a model for something else, or the other way."""
    in_model = any(variable.path.startswith("head/") for variable in model.weights)
    in_source = any(re.match(description.form.head_names, name) for name in description.names)
    differ = bool(own["num_classes"]) != bool(description.arguments["num_classes"])
    if in_model and in_source and differ and description.options.head == "require":
        raise ValueError(
            f"{str(description.checkpoint.path)!r} has a head for another task than the model's. "
            "Pass head='new' to load the rest."
        )


def encoder_alone(description, overrides, head):
    """Returns a description without its head that returns maps, if the caller asks for another head or for none."""
    if head != "new" and not {"num_classes", "pooling", "representation_size", "final_norm"} & set(overrides):
        return description
    arguments = description.arguments | ({"maps": None} if description.arguments.get("maps") else {})
    origins = {name: why for name, why in description.origins.items() if name != "maps"}
    return description._replace(arguments=arguments, origins=origins)


def of_other_heads(source, description, head, overrides):
    """Returns a sentence in a tuple if a classifier's head is no linear layer, and so not in the model, else `()`.

    Raises:
        ValueError: If the caller requires it.
    """
    form, names, arguments = description.form, description.names, description.arguments
    others = [name for name in names if re.match(form.head_names, name) and not PRETRAINING_HEAD.match(name)]
    needs_head = head != "new" and overrides.get("num_classes") != 0
    no_classes = arguments.get("pooling") == "none" or "maps" in arguments
    if not others or not needs_head or arguments["num_classes"] or no_classes:
        return ()
    of_words = "vocabulary" in arguments
    what = "answers no questions" if of_words else "is not one linear layer"
    remark = f"{str(source)!r} has a head that {what}, and cannot be loaded: {tables.listing(others)}."
    if head == "require" or (of_words and not overrides.get("num_classes")):
        raise ValueError(f"{remark} For a head of your own, pass head='new'.")
    return (
        f"{remark} The model has {'a new head' if overrides.get('num_classes') else 'no head: it returns features'}.",
    )


# What transformers' `problem_type`, also in timm's files, says of a head: the kind of its output in `models.kinds`.
PROBLEMS = {
    "single_label_classification": "classes",
    "multi_label_classification": "labels",
    "regression": "numbers",
}
KIND = "kind"  # in the notes of `save_checkpoint`
MULTI_LABEL = "multi_label"  # timm's word for several labels, true or false


def kind_of(checkpoint, classes, options):
    """Returns the kind of output that a source states of its classifier, a row of `models.kinds`.

    As in transformers' pipeline, one logit without a `problem_type` has a sigmoid. CLIP's projection gives embeddings.
    `None` if the source states none, or its classifier is not loaded.

    Args:
        checkpoint: An open `Checkpoint`.
        classes: Number of the model's outputs; 0 without a classifier.
        options: `request.Options`.

    Raises:
        ValueError: For a `problem_type` that transformers does not have.
    """
    if not classes or options.head == "new":
        return None
    if checkpoint.notes.get(GIVES) or KIND in checkpoint.notes:
        return checkpoint.notes.get(KIND)  # Keras's own file says it of a layer
    names = [name for name in checkpoint.shapes if not name.startswith("text")]
    if not any("classifier" in name for name in names) and any(map(TEXT_PROJECTION.fullmatch, names)):
        return "embeddings"
    config = checkpoint.config
    nested = config.get("pretrained_cfg") or {}
    problem = config.get("problem_type", nested.get("problem_type"))
    if problem is None:
        several = config.get(MULTI_LABEL, nested.get(MULTI_LABEL)) or (classes == 1 and "model_type" in config)
        return "labels" if several else None
    if problem not in PROBLEMS:
        raise ValueError(
            f"`problem_type` in the configuration of {str(checkpoint.path)!r} must be one of {', '.join(PROBLEMS)}. "
            f"Received: {problem!r}"
        )
    return PROBLEMS[problem]


def note_kind(model, kind):
    """Writes the kind of a classifier's output, from `kind_of`, into the metadata of a model."""
    if kind:
        note(model, kind)


def problem_of(kind):
    """Returns what transformers' configuration says of a kind of output: a dictionary, empty for one label."""
    name = next((name for name, of in PROBLEMS.items() if of == kind != "classes"), None)
    return {"problem_type": name} if name else {}
