"""Options that earlier versions had, or had not. Files can be read if the former are unset in them."""

REMOVED = {
    # name: (its unset value, the replacement)
    "optim.image_sizes": ([], "Training begins at the full image size. For shorter training, set model.patch_dropout."),
}

BANDS = {f"data.{name}": None for name in ("bands", "pages", "value_range", "no_data")}
ADDED = {  # options by task, and their values in runs of versions before them, whose hashes are without them
    "Caption": {"task.start": "", "task.marks": []},
    "Generate": {"task.autoencoder": None, "task.shift": 1.0},
    "Restore": {"task.jobs": [], "task.reference": False},
}


def without_removed(part, values):
    """Returns a part of a recipe, a dictionary, without options that have been removed from the package.

    Raises:
        ValueError: For a removed option that was set.
    """
    for name, (unset, _) in REMOVED.items():
        holder, _, key = name.partition(".")
        if holder == part and values.get(key, unset) != unset:
            raise ValueError(f"{meant(name)} Received: {name}={values[key]!r}")
    return {key: value for key, value in values.items() if f"{part}.{key}" not in REMOVED}


def meant(text):
    """Returns a hint for a removed option in a text, such as `"optim.image_sizes"`; `""` without one."""
    found = [name for name in REMOVED if name.rpartition(".")[2] in text]
    return f"{found[0]} was removed. {REMOVED[found[0]][1]}" if found else ""
