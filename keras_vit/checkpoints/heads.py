"""Whether the head of a checkpoint is the one that a model asks for."""

import re

from keras_vit.checkpoints import tables

# DINO's and iBOT's heads; OpenCLIP's projection of two layers is `head.mlp.fc1` and `fc2`.
OF_PRETRAINING = re.compile(r"pre_logits[./]|head\.(mlp2?(?!\.fc)|last_layer2?|last_norm2?)\.")


def check_head(model, checkpoint, description, own, options):
    """Raises ValueError if a classifier's head would be loaded into a model for something else, or the other way."""
    ours = any(variable.path.startswith("head/") for variable in model.weights)
    theirs = any(re.match(description.form.head_names, name) for name in description.names)
    differ = bool(own["num_classes"]) != bool(description.arguments["num_classes"])
    if ours and theirs and differ and options.head == "require":
        raise ValueError(
            f"{str(checkpoint.path)!r} has a head for another task than the model's. Pass head='new' to load the rest."
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
    form, names, stated, *_ = description
    others = [name for name in names if re.match(form.head_names, name) and not OF_PRETRAINING.match(name)]
    wanted = head != "new" and overrides.get("num_classes") != 0
    no_classes = stated.get("pooling") == "none" or "maps" in stated
    if not others or not wanted or stated["num_classes"] or no_classes:
        return ()
    of_words = "vocabulary" in stated
    what = "answers no questions" if of_words else "is not one linear layer"
    said = f"{str(source)!r} has a head that {what}, and cannot be loaded: {tables.listing(others)}."
    if head == "require" or (of_words and not overrides.get("num_classes")):
        raise ValueError(f"{said} For a head of your own, pass head='new'.")
    return (
        f"{said} The model has {'a new head' if overrides.get('num_classes') else 'no head: it returns features'}.",
    )
