import numpy as np
import pytest

from keras_vit.explain.embedding import unit
from keras_vit.frozen import patch_memory as memory
from keras_vit.frozen.patch_memory import PatchMemory, coreset
from tests.harness import run_layer_test

pytestmark = pytest.mark.backend
RNG = np.random.default_rng(0)


def test_layer(tmp_path):
    run_layer_test(lambda dtype: PatchMemory(5, 0.5, dtype=dtype), (2, 3, 4, 8), (2, 3, 4), tmp_path=tmp_path)


def test_distances_are_cosine_s_whatever_is_compared_at_once(monkeypatch):
    tokens, known = RNG.normal(size=(2, 3, 2, 8)).astype("float32"), unit(RNG.normal(size=(7, 8)))
    wanted = 1 - (unit(tokens) @ known.T).max(1).reshape(2, 3, 2)
    for rows in (2, 100):
        monkeypatch.setattr(memory, "ROWS", rows)
        layer = PatchMemory(7)
        layer.build(tokens.shape)
        layer.memory.assign(known)
        np.testing.assert_allclose(np.asarray(layer(tokens)), wanted, atol=1e-5)


def test_a_coreset_is_greedy_k_center():
    tokens = RNG.normal(size=(60, 6)).astype("float32")
    chosen = coreset(tokens, 10)
    assert len(set(chosen)) == 10
    distances = np.linalg.norm(tokens[:, None] - tokens[None], axis=-1)
    for i in range(1, 10):
        assert distances[:, chosen[:i]].min(1).argmax() == chosen[i]
    assert sorted(coreset(tokens, 60)) == list(range(60))


def test_a_coreset_covers_what_is_rare():
    tokens = np.concatenate([RNG.normal(size=(500, 300)), RNG.normal(20, 1, (1, 300))]).astype("float32")
    assert 500 in coreset(tokens, 2)
