import numpy as np
import scipy.linalg

from keras_vit.tasks.generate.moments import Moments, frechet


def moments(vectors, parts=3):
    found = Moments()
    for part in np.array_split(vectors, parts):
        found.add(part)
    return found


def test_moments_are_numpy_s():
    vectors = np.random.default_rng(0).normal(2.0, 3.0, (50, 4))
    found = moments(vectors)
    np.testing.assert_allclose(found.mean, vectors.mean(0))
    np.testing.assert_allclose(found.covariance, np.cov(vectors.T))


def test_distance_is_that_of_the_matrix_root():
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(40, 5)), rng.normal(0.5, 2.0, (30, 5)) @ rng.normal(size=(5, 5))
    root = scipy.linalg.sqrtm(np.cov(one.T) @ np.cov(other.T)).real
    expected = np.square(one.mean(0) - other.mean(0)).sum() + np.trace(np.cov(one.T) + np.cov(other.T) - 2 * root)
    assert abs(frechet(moments(one), moments(other)) - expected) < 1e-8
    assert abs(frechet(moments(one), moments(one))) < 1e-9


def test_fewer_vectors_than_channels_and_a_shift():
    few = np.random.default_rng(0).normal(size=(3, 8))
    assert abs(frechet(moments(few), moments(few + 2.0)) - 8 * 4.0) < 1e-6
    assert abs(frechet(moments(few[:1], 1), moments(few[1:2], 1)) - np.square(few[0] - few[1]).sum()) < 1e-9
