"""Types of arguments: what an annotation says is what is checked, before the function begins."""

import functools
import inspect
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from keras_vit.utils import checks

Positive = Annotated[int, checks.positive]  # 1 or more
Whole = Annotated[int, checks.whole]  # 0 or more
Rate = Annotated[float, checks.rate]  # 0 or more, and below 1
AboveZero = Annotated[float, checks.above_zero]  # finite
Number = Annotated[float, checks.number]  # finite
Switch = Annotated[bool, checks.switch]  # `True` or `False`, and nothing that counts as one


def among(allowed):
    """Returns the type of values that are one of those allowed."""
    return Annotated[Any, functools.partial(_one_of, tuple(allowed))]


def _one_of(allowed, **values):
    for name, value in values.items():
        checks.one_of(name, value, allowed)


def typed(function):
    """Decorates a function, or the `__init__` of a class: arguments that are passed are checked by their annotations.

    Those of this module are, `Literal`, and each with `| None`; others are not. NumPy's numbers and arrays become
    Python's first, since neither Keras nor a file takes them.

    Raises:
        ValueError: For a value that does not fit, before the function is called.
    """
    signature = inspect.signature(function)
    rules = {name: rule for name, each in signature.parameters.items() if (rule := _rule(each.annotation))}

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        args, kwargs = [*map(checks.plain, args)], checks.plain(kwargs)
        for name, value in {**dict(zip(signature.parameters, args)), **kwargs}.items():
            if name in rules:
                check, optional = rules[name]
                if value is not None or not optional:
                    check(**{name: value})
        return function(*args, **kwargs)

    wrapper.__signature__ = signature  # Keras asks for it without looking inside
    return wrapper


def _rule(hint):
    """Returns the check of an annotation, and whether `None` passes it; `None` for an annotation without a check."""
    inside = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        rules = [_rule(each) for each in inside if each is not types.NoneType]
        if len(rules) != 1 or rules[0] is None:
            return None
        check, _ = rules[0]
        if getattr(check, "func", None) is _one_of and types.NoneType in inside:  # for what the error lists
            check = functools.partial(_one_of, (None, *check.args[0]))
        return check, types.NoneType in inside
    if get_origin(hint) is Literal:
        return functools.partial(_one_of, inside), False
    checked = get_origin(hint) is Annotated and callable(hint.__metadata__[0])
    return (hint.__metadata__[0], False) if checked else None
