"""The options in `vit`'s arguments: their tables, their nested form and their dotted names, and words for mistakes."""

import functools
import inspect

from keras_vit.layers.blocks.norms import NORM
from keras_vit.layers.blocks.transformer_block import BLOCK
from keras_vit.layers.heads.token_pool import POOL
from keras_vit.layers.inputs.patch_encoder import TOKENS
from keras_vit.utils import checks, other_words

OPTIONS = {"tokens": TOKENS, "norm": NORM, "block": BLOCK, "pool": POOL}  # by argument: the options and their defaults


def complete(argument, options):
    """Returns all options of an argument of `vit`; raises ValueError for an unknown one."""
    return OPTIONS[argument] | _checked(argument, options)


def unusual(argument, options):
    """Returns those options in an argument of `vit` that ask for something else than the default."""
    return {name: value for name, value in (options or {}).items() if value and value != OPTIONS[argument][name]}


def merged(arguments, *others):
    """Returns arguments of `vit` with those of `others` in their place; of the dictionaries, single options."""
    for other in others:
        dictionaries = [name for name in OPTIONS if name in arguments or name in other]
        inside = {name: _checked(name, arguments.get(name)) | _checked(name, other.get(name)) for name in dictionaries}
        arguments = {**arguments, **other, **inside}
    return arguments


def _checked(argument, options):
    options = {} if options is None else options
    checks.options(argument, options, OPTIONS[argument])
    return options


def flat(arguments):
    """Returns arguments with each option under its dotted name, such as `"block.gelu"`."""
    dotted = {}
    for name, value in arguments.items():
        inside = name in OPTIONS and isinstance(value, dict)
        dotted |= {f"{name}.{option}": value[option] for option in value} if inside else {name: value}
    return dotted


def nested(dotted):
    """Returns the arguments of dotted names; the inverse of `flat`."""
    arguments = {}
    for name, value in dotted.items():
        argument, _, option = name.partition(".")
        arguments = merged(arguments, {argument: {option: value}} if option else {name: value})
    return arguments


def written(name, value):
    """Returns an argument as a caller writes it, such as `block={'gelu': 'exact'}` for `"block.gelu"`."""
    ((argument, value),) = nested({name: value}).items()
    return f"{argument}={value!r}"


def check_names(arguments, names):
    """Raises ValueError for an argument that is not known, or an unknown option in one."""
    for name, value in arguments.items():
        if name not in names:
            raise ValueError(unknown(name, value, names))
    for name in OPTIONS:
        complete(name, arguments.get(name))


def unknown(name, value, names, function="vit"):
    """Returns the message for an argument that a function of models does not have, with what is meant."""
    home = next((argument for argument, options in OPTIONS.items() if argument in names and name in options), None)
    place = MEANT.get(name, "").partition("=")[0].partition(" ")[0]
    hint = (
        f"keras_vit has {MEANT[name]}." if name in MEANT and (place in names or "." in place or "(" in place) else None
    )
    hint = hint or other_words.meant(name, names) or checks.near(name, names)
    if home:
        hint = f"`{name}` is an option of `{home}`: {written(f'{home}.{name}', value)}"
    return f"`{function}` has no argument {name!r}. {hint}"


def explained(function):
    """Decorates a function that builds a model: for an unknown argument, the error says what is meant."""
    parameters = inspect.signature(function).parameters

    @functools.wraps(function)
    def wrapper(*args, **arguments):
        for name, value in arguments.items():
            if name not in parameters:
                raise TypeError(unknown(name, value, parameters, function.__name__))
        return function(*args, **arguments)

    return wrapper


ARGUMENTS = {  # of other libraries, and what models have in their place; those of layers: `other_words`
    "num_classes": "classes class_num n_classes nb_classes num_class num_labels",
    "image_size": "image_shape img_size input_size size",
    "image_size=(height, width) and channels": "input_shape",
    "channels": "in_channels in_chans num_channels",
    "num_classes=0, for a model without a head": "include_top",
    "keras.Sequential([model, keras.layers.Softmax()])": "activation classifier_activation",
    "from_pretrained('B/16-augreg-i21k-i1k-384', ...), for trained weights": "pretrained weights",
}
MEANT = {other: ours for ours, others in ARGUMENTS.items() for other in others.split()}
