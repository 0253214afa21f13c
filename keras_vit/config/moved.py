"""Options of a recipe that earlier versions had elsewhere."""

_OF_OPTIM = (
    "loss", "head_bias", "label_smoothing", "class_weights", "distill", "teacher", "distill_weight", "temperature",
)  # fmt: skip
MOVED = {"metrics": "task.metrics", **{f"optim.{name}": f"task.{name}" for name in _OF_OPTIM}}


def migrated(values):
    """Returns a recipe's plain values with each option where this version has it.

    Args:
        values: Nested dictionaries, as `to_dict` returns or an earlier version wrote.
    """
    values = {name: dict(value) if isinstance(value, dict) else value for name, value in values.items()}
    for old, new in MOVED.items():
        part, _, key = old.rpartition(".")
        holder = values.get(part, {}) if part else values
        if key in holder:
            values.setdefault("task", {"kind": "Classify"})[new.partition(".")[2]] = holder.pop(key)
    return values


def hint(error):
    """Returns where an option is now, if an error says that its old place has no such option; else `""`."""
    unknown = [name for name in MOVED if f"unexpected keyword argument {name.rpartition('.')[2]!r}" in str(error)]
    return f". It is an option of the task now: task=Classify({unknown[0].rpartition('.')[2]}=...)" if unknown else ""
