"""Settings that a task refuses, and why: the class attribute `refuses` of each task.

It is a dictionary from dotted names of settings, as on the command line, to reasons, a sentence each.
"""

import dataclasses

from keras_vit.utils import checks

OFF = (None, 0, "none")  # values of a model's argument that count as not set
MIXES = ("augment.mixup", "augment.cutmix")
MOVES = (*MIXES, "augment.randaugment")  # they change an image, but not its dense targets


def each(names, why):
    """Returns a dictionary from each name to the same reason."""
    return dict.fromkeys(names, why)


def of_places(targets):
    """Returns the refusals of a task with dense targets, such as `"masks"`."""
    return each(MOVES, f"MixUp, CutMix and RandAugment do not change {targets}.")


def of_whole(targets):
    """Returns the refusals of a task with dense targets that are scored at full size."""
    whole = f"{targets.capitalize()} are scored whole: data.resize, which crops the center, must be None."
    return {**of_places(targets), "data.resize": whole}


def check(task, recipe):
    """Raises ValueError, with the reason, if a recipe sets an option that its task refuses.

    A name in `refuses` that is no setting is an error too.

    Args:
        task: A `Task`; its class and all base classes may have `refuses`.
        recipe: A `Recipe`; `None` to check the task's own settings only.
    """
    rows = {}
    for owner in reversed(type(task).__mro__):
        rows |= vars(owner).get("refuses", {})
    refuse(rows, task, recipe)


def refuse(rows, task, recipe):
    """Does the work of `check` for the rows of one dictionary, such as those of one way of a task."""
    parts = {"task": task} if recipe is None else {**vars(recipe), "task": task}
    values = {name: _value(parts, name) for name in rows if recipe is not None or name.startswith("task.")}
    for why in dict.fromkeys(rows.values()):
        shown = [f"{name}={checks.shown(value)}" for name, (value, on) in values.items() if on and rows[name] == why]
        if shown:
            raise ValueError(f"{why} Received: {', '.join(shown)}")


def _value(parts, name):
    """Returns a setting's value, and whether it differs from its default."""
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
