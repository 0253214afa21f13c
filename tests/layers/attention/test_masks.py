import numpy as np
import pytest

from keras_vit.layers.attention.masks import joined_mask

pytestmark = pytest.mark.backend

ALL = np.ones((1, 2, 3), bool)


def test_without_any_there_is_none():
    assert joined_mask(None, False, 2, 3) is None


@pytest.mark.parametrize("given", [ALL, ALL[:, None]])
def test_both_are_joined_for_all_heads(given):
    found = np.asarray(joined_mask(given & [True, False, True], True, 2, 3))
    np.testing.assert_array_equal(found, [[[[True, False, False], [True, False, False]]]])
