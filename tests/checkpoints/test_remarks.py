import warnings

import pytest

from keras_vit import vit
from keras_vit.checkpoints import remarks
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.tables import Assumed, Otherwise
from keras_vit.models.options import merged
from tests.checkpoints.helpers import SMALL

pytestmark = pytest.mark.backend


def test_what_a_file_does_not_show_is_said():
    origins = {
        "block.gelu": Assumed("as in most"),
        "num_heads": "config.json",
        "mean": Otherwise("It has another way."),
    }
    with pytest.warns(remarks.Assumption, match=r"Assumed: block={'gelu': 'tanh'} \(as in most\). To choose otherwise"):
        remarks.warn_of_assumptions("a.npz", {"block": {"gelu": "tanh"}, "num_heads": 3}, origins)
    with pytest.warns(remarks.Assumption, match="^'a.npz': It has another way.$"):
        remarks.warn_of_preparation("a.npz", origins)


def test_another_function_is_said():
    own = arguments_of(vit(**SMALL, block={"gelu": "exact"}))
    with pytest.warns(UserWarning, match=r"belong to a model with block={'gelu': 'tanh'} \(the model: 'exact'\)"):
        remarks.warn_of_differences("a.npz", merged(own, {"block": {"gelu": "tanh"}}), own, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        remarks.warn_of_differences("a.npz", own, own, {})
        remarks.warn_of_differences("a.npz", own | {"mean": 0.4}, own, {"mean": Assumed("half")})
