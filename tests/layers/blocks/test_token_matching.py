import numpy as np
import pytest
from keras import ops

from keras_vit.layers.blocks.token_matching import match, places, sizes_of, whole
from tests.marks import first_everywhere

pytestmark = pytest.mark.backend


def targets(keys, merged, num_prefix):
    """Returns the place of each token after merging."""
    place = match(keys, merged, num_prefix)
    return np.asarray(places(place, merged, keys.shape[1], num_prefix))[:, :, 0].round().astype(int)


def groups_of(keys, r, prefix):
    """The published algorithm step by step, with lists: returns which tokens of an image are in each token after it.

    Bolya et al. 2023, appendix D. Prefix tokens are a class token, then a distillation token.
    """
    keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    alike = keys[::2] @ keys[1::2].T
    alike[: prefix > 0], alike[:, : prefix > 1] = -np.inf, -np.inf
    best, chosen = alike.max(1), alike.argmax(1)
    order = np.argsort(-best, kind="stable")
    accepted, left = order[:r], np.sort(order[r:]) if prefix else order[r:]
    first, second = [[2 * i] for i in left], [[2 * j + 1] for j in range(len(keys) // 2)]
    for i in accepted:
        second[chosen[i]].append(2 * i)
    return [first[0], second[0], *first[1:], *second[1:]] if prefix > 1 else first + second


@pytest.mark.parametrize("prefix", first_everywhere(1, 0, 2))
@pytest.mark.parametrize("tokens", [5, 16, 17, 50])
def test_it_is_the_published_matching(tokens, prefix):
    keys = np.random.default_rng(tokens).normal(size=(4, tokens, 6)).astype("float32")
    for r in {1, 2, 5, (tokens - prefix) // 2}:
        if r <= (tokens - prefix) // 2:
            found = targets(keys, r, prefix)
            for image in range(4):
                for place, group in enumerate(groups_of(keys[image], r, prefix)):
                    assert (found[image][group] == place).all()


@pytest.mark.parametrize("prefix", [1, 3, 5])
def test_prefix_tokens_stay_first_and_alone(prefix):
    keys = np.ones((2, 20, 4), "float32")  # all alike: the earliest proposals win
    found = targets(keys, (20 - prefix) // 2, prefix)
    np.testing.assert_array_equal(found[:, :prefix], [range(prefix)] * 2)
    assert (found[:, prefix:] >= prefix).all() and sorted(set(found[0])) == list(range(20 - (20 - prefix) // 2))


def test_sizes_and_the_way_back():
    sources = np.array([[0, 1, 1, 2, 1]], "int32")[:, :, None]
    np.testing.assert_array_equal(np.asarray(sizes_of(sources, 3)), [[[1], [3], [1]]])
    x = ops.convert_to_tensor(np.arange(6, dtype="float32").reshape(1, 3, 2))
    np.testing.assert_array_equal(np.asarray(whole(x, sources))[0], [[0, 1], [2, 3], [2, 3], [4, 5], [2, 3]])
