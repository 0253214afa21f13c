"""A layer's configuration, from the signature of its class."""

import inspect


def own_config(layer, owner):
    """Returns the arguments that a class takes beside Keras's own, with the values of the attributes of these names.

    Args:
        layer: Layer that keeps each argument in an attribute of its name.
        owner: The class whose `__init__` names them: that of the layer, or the one that it inherits from.
    """
    names = [name for name, argument in inspect.signature(owner.__init__).parameters.items()
             if name != "self" and argument.kind is not argument.VAR_KEYWORD]  # fmt: skip
    return {name: getattr(layer, name) for name in names}
