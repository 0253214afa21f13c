import numpy as np
import pytest

from keras_vit.tasks.regress.number_tally import NumberTally

RNG = np.random.default_rng(0)
TRUTH = RNG.normal(size=(50, 2)) * [1, 10] + [1e6, 0]
FOUND = TRUTH + RNG.normal(size=(50, 2)) * [0.5, 1]


def filled(names, truth, found, **more):
    tally = NumberTally(names, **more)
    parts = [tally.add({"numbers": truth[part]}, found[part]) for part in (slice(20), slice(20, None))]
    return tally, np.concatenate(parts)


def test_scores_are_scikit_learns():
    metrics = pytest.importorskip("sklearn.metrics")
    tally, _ = filled(("a", "b"), TRUTH, FOUND, deviation=(1.0, 10.0))
    scores = tally.result()
    assert tuple(scores) == tally.scores == ("mae", "mae_a", "mae_b", "rmse_a", "rmse_b", "r2_a", "r2_b")
    absolute = np.abs(FOUND - TRUTH).mean(0)
    for i, name in enumerate("ab"):
        assert scores[f"mae_{name}"] == pytest.approx(absolute[i])
        assert scores[f"rmse_{name}"] == pytest.approx(metrics.root_mean_squared_error(TRUTH[:, i], FOUND[:, i]))
        assert scores[f"r2_{name}"] == pytest.approx(metrics.r2_score(TRUTH[:, i], FOUND[:, i]), rel=1e-5)
    assert scores["mae"] == pytest.approx((absolute / [1, 10]).mean())


def test_one_number_has_plain_names_and_images_are_ranked_by_their_errors():
    tally, ranks = filled(("a",), TRUTH[:, :1], FOUND[:, :1])
    assert tuple(tally.result()) == tally.scores == ("mae", "rmse", "r2")
    np.testing.assert_allclose(ranks, -np.abs(FOUND - TRUTH)[:, 0])


def test_of_a_constant_target_r2_means_nothing():
    tally, _ = filled(("a",), np.ones((50, 1)), FOUND[:, :1])
    assert np.isnan(tally.result()["r2"])


def test_figures_need_what_was_kept():
    tally, _ = filled(("a", "b"), TRUTH, FOUND, keep=True)
    ((caption, figure),) = tally.figures().items()
    assert "one point an image" in caption and len(figure.axes) == 2
