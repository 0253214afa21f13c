import numpy as np
import pytest

from keras_vit import PoseHead
from tests.harness import run_layer_test
from tests.marks import once

pytestmark = pytest.mark.backend


@pytest.mark.parametrize(
    "options, output, inside",
    [
        (dict(scale=3), (2, 9, 6, 5), []),
        pytest.param(dict(classic=True, filters=6), (2, 12, 8, 5), ["deconv0", "norm1"], marks=once),
    ],
)
def test_layer(options, output, inside, tmp_path):
    make = lambda dtype: PoseHead((3, 2), 5, **options, dtype=dtype)  # noqa: E731
    run_layer_test(make, (2, 7, 8), output, inside, tmp_path, last="conv")


def test_a_token_is_seen_where_its_patch_is():
    """One token more than the patches: the first is of no place."""
    head = PoseHead((4, 3), 1)
    head.build((1, 13, 1))
    head.conv.kernel.assign(np.eye(3)[1][:, None, None, None] * np.eye(3)[1][None, :, None, None])  # the middle alone
    tokens = np.zeros((1, 13, 1), "float32")
    tokens[0, 1 + 2 * 3 + 1] = 1  # the third row's second patch
    found = np.asarray(head(tokens))[0, ..., 0]
    row, column = np.unravel_index(found.argmax(), found.shape)
    assert found.shape == (16, 12) and row // 4 == 2 and column // 4 == 1


def test_refused():
    for options in (dict(keypoints=0), dict(scale=0), dict(filters=0), dict(classic="yes"), dict(grid=(0, 2))):
        with pytest.raises(ValueError, match=next(iter(options))):
            PoseHead(**{"grid": (2, 2), "keypoints": 3, **options})
    with pytest.raises(ValueError, match="with 2 x 2 patches. Received: .1, 3, 8."):
        PoseHead((2, 2), 3).build((1, 3, 8))
