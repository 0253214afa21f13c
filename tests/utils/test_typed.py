from typing import Literal

import numpy as np
import pytest

from keras_vit.utils.typed import AboveZero, Number, Positive, Rate, Switch, Whole, among, typed


@typed
def made(
    width: Positive,
    *,
    depth: Whole = 0,
    dropout: Rate = 0.0,
    epsilon: AboveZero | None = None,
    offset: Number = 0.0,
    bias: Switch = True,
    order: Literal["pre", "post"] | None = "pre",
    gelu: among({"exact": 1, "tanh": 2}) = "tanh",
    name: str | None = None,
    **more,
):
    return width, depth, dropout, epsilon, order, name, more


def test_what_fits_is_passed_on_as_python_s_own():
    width, *rest = made(np.int64(3), dropout=np.float32(0.5), epsilon=None, order=None, name=7, other=np.arange(2))
    assert type(width) is int and rest == [0, 0.5, None, None, 7, {"other": [0, 1]}]


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({"width": 0}, "`width` must be a positive integer. Received: width=0"),
        ({"width": True}, "`width` must be a positive integer. Received: width=True"),
        ({"depth": -1}, "`depth` must be an integer, 0 or more. Received: depth=-1"),
        ({"dropout": 1.0}, "`dropout` must be at least 0 and below 1. Received: dropout=1.0"),
        ({"epsilon": 0}, "`epsilon` must be a finite number above 0. Received: epsilon=0"),
        ({"offset": None}, "`offset` must be a finite number. Received: offset=None"),
        ({"bias": "False"}, "`bias` must be True or False. Received: bias='False'"),
        ({"order": "last"}, "`order` must be one of None, 'pre', 'post'. Received: order='last'"),
        ({"gelu": None}, "`gelu` must be one of 'exact', 'tanh'. Received: gelu=None"),
    ],
)
def test_what_does_not_fit_is_named(arguments, said):
    with pytest.raises(ValueError) as error:
        made(**{"width": 1, **arguments})
    assert str(error.value) == said


def test_python_s_own_errors_stay():
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'width'"):
        made(depth=1)
