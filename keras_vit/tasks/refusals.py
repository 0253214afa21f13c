"""Settings that a task takes none of, and why: a table of each task, `refuses`, read in one place.

A row is the dotted name of a setting, as on the command line, and a sentence.
"""

import dataclasses

from keras_vit.utils import checks

OFF = (None, 0, "none")  # of an argument of the model
MIXES = ("augment.mixup", "augment.cutmix")
MOVES = (*MIXES, "augment.randaugment")  # what changes an image and not a target at each of its places


def each(names, why):
    """Returns rows of a table, one for each name, with the same reason."""
    return dict.fromkeys(names, why)


def of_places(targets):
    """Returns the rows of a task whose targets, such as `"masks"`, have a value at each place of the image."""
    return each(MOVES, f"MixUp, CutMix and RandAugment do not change {targets}.")


def of_whole(targets):
    """Returns the rows of a task whose targets are at each place of the whole image."""
    whole = f"{targets.capitalize()} are scored whole: data.resize, which crops the center, must be None."
    return {**of_places(targets), "data.resize": whole}


def check(task, recipe):
    """Raises ValueError, with the reason, if settings of a recipe are not as if its task were alone.

    A row of a task of one's own that names no setting is an error too.

    Args:
        task: A `Task`; the rows of its class and of those that it is made of count.
        recipe: A `Recipe`, or `None` for the task's own settings alone.
    """
    rows = {}
    for owner in reversed(type(task).__mro__):
        rows |= vars(owner).get("refuses", {})
    parts = {"task": task} if recipe is None else {**vars(recipe), "task": task}
    values = {name: _value(parts, name) for name in rows if recipe is not None or name.startswith("task.")}
    for why in dict.fromkeys(rows.values()):
        shown = [f"{name}={checks.shown(value)}" for name, (value, on) in values.items() if on and rows[name] == why]
        if shown:
            raise ValueError(f"{why} Received: {', '.join(shown)}")


def _value(parts, name):
    """Returns a setting's value, and whether it is another one than its default."""
    part, _, option = name.partition(".")
    if part == "model":
        value = parts[part].get(option)
        return value, value not in OFF
    options = parts.get(part)
    fields = dataclasses.fields(options) if dataclasses.is_dataclass(options) else ()
    field = next((field for field in fields if field.name == option), None)
    if field is None:
        raise ValueError(f"`refuses` of a task must name settings, such as 'augment.flip'. Received: {name!r}")
    default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
    value = getattr(options, option)
    return value, value != default
