import numpy as np
import pytest

from keras_vit.tasks.compress.latent_loss import LatentLoss

pytestmark = pytest.mark.backend


def test_the_loss_is_the_error_and_the_divergence():
    rng = np.random.default_rng(0)
    true, found = (rng.uniform(0, 255, (3, 4, 6, 2)).astype("float32") for _ in range(2))
    share = rng.uniform(1, 5, (3, 1, 1, 1)).astype("float32")
    given = np.concatenate([found, np.broadcast_to(share, (3, 4, 6, 1))], -1)
    expected = np.abs(true / 127.5 - found / 127.5).mean((1, 2, 3)) + 0.1 * share[:, 0, 0, 0]
    np.testing.assert_allclose(np.asarray(LatentLoss(0.1).call(true, given)), expected, rtol=1e-5)
    again = LatentLoss.from_config(LatentLoss(0.1).get_config())
    assert again.kl == 0.1 and again.name == "loss"
