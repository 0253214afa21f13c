"""The configuration of what Keras saves: its arguments, each kept in an attribute of its name."""

import inspect

import keras


def arguments_of(kind, base):
    """Returns the names of the arguments of a class and of the classes that it is made of, down to `base` without it.

    Args:
        kind: A subclass of `base`.
        base: A class.
    """
    owners = [owner for owner in kind.__mro__ if issubclass(owner, base) and owner is not base]
    return [name for owner in owners if "__init__" in vars(owner) for name in _arguments(owner)]


def _arguments(owner):
    names = inspect.signature(owner.__init__).parameters
    return [name for name, argument in names.items() if name != "self" and argument.kind is not argument.VAR_KEYWORD]


class Loss(keras.losses.Loss):
    """A loss, a number for each image: a subclass keeps each argument in an attribute of its name.

    Keras's configuration forgets the precision when a model is saved; this one has it, and the arguments.
    """

    def __init__(self, name="loss", **kwargs):
        super().__init__(name=name, **kwargs)

    def get_config(self):
        own = {name: getattr(self, name) for name in arguments_of(type(self), Loss)}
        return {**super().get_config(), **own, "dtype": self.dtype}


class ImageMean(keras.metrics.Mean):
    """A metric that is the mean over images; a subclass keeps each argument in an attribute of its name."""

    def get_config(self):
        own = {name: getattr(self, name) for name in arguments_of(type(self), ImageMean)}
        return {**super().get_config(), **own}
