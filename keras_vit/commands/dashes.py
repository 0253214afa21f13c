"""Options of a recipe or a model that were typed as options of a command: `--epochs 3` for `optim.epochs=3`."""

import inspect
import shlex

KINDS = {"changes", "options"}  # arguments of commands that take NAME=VALUE


def unknown(command, words):
    """Returns the options with dashes that a command does not have, and their values or `None`: a dictionary.

    It is empty for a command without options of a recipe or a model.

    Args:
        command: The command's function.
        words: The words behind its name.
    """
    takes = inspect.signature(command).parameters
    if not KINDS & set(takes):
        return {}
    own = {name for name, each in takes.items() if each.kind is each.KEYWORD_ONLY} | {"help"}
    words = words[: words.index("--")] if "--" in words else words
    values = {}
    for word, following in zip(words, [*words[1:], "--"]):
        name, equals, value = word.partition("=")
        if name.startswith("--") and name[2:].replace("-", "_") not in own:
            values[name] = value if equals else None if following.startswith("--") or "=" in following else following
    return values


def check(command, words, options):
    """Raises ValueError that says how to write them, if any that `unknown` gave are options of a recipe or a model."""
    from keras_vit.config import cookbook

    takes = inspect.signature(command).parameters
    named = next((word for word in words if word.endswith(".py") or word in cookbook.list_recipes()), None)
    options = {word: None if value == named else value for word, value in options.items()}  # --remat digits
    recipe = _loaded(named if named and "recipe" in takes else "digits")
    hints = {word: _meant(word[2:].replace("-", "_"), value, recipe, takes) for word, value in options.items()}
    if any(hints.values()):
        words_received = [
            (word if options[word] is None else f"{word} {shlex.quote(options[word])}") for word in hints if hints[word]
        ]
        raise ValueError(
            f"Options must be NAME=VALUE, without dashes: {' '.join(filter(None, hints.values()))}. "
            f"Received: {' '.join(words_received)}"
        )


def _loaded(name):
    """Returns a recipe; one of the package for a file that does not run."""
    from keras_vit.config import cookbook

    try:
        return cookbook.load_recipe(name)
    except (ValueError, TypeError, OSError):
        return cookbook.load_recipe("digits")


def _meant(name, value, recipe, takes):
    """Returns how an option is written, or the ways that it can be meant; `""` for none that there is."""
    from keras_vit import config

    names = config.called(name, recipe)
    off = not names and name.startswith("no_")
    names = config.called(name.removeprefix("no_"), recipe) if off else names
    if "run" in takes:  # of a trained model, the data and what is measured
        names = [each for each in names if each.startswith(("data.", "task."))]
    if "source" in takes:  # arguments of the model itself
        names = [each.removeprefix("model.") for each in names if each.startswith("model.")]
    return " or ".join(_written(each, value, off, recipe) for each in names[:2])


def _written(name, value, off, recipe):
    """Returns an option with its value: of a switch without one, that it is on or off."""
    from keras_vit import config

    part, _, key = name.partition(".")
    options = config.to_dict(recipe).get(part)
    switch = isinstance(options, dict) and isinstance(options.get(key), bool)
    value = value if value is not None else str(not off) if switch else "VALUE"
    return shlex.quote(f"{name}={value}")
