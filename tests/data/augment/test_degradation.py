import io

import numpy as np
import pytest
from PIL import Image

tf = pytest.importorskip("tensorflow")

from keras_vit.config import Restore  # noqa: E402
from keras_vit.data.augment import degradation  # noqa: E402

IMAGES = np.random.default_rng(0).integers(0, 256, (2, 24, 36, 3)).astype("float32")
SEED = (1, 2)


def imresize(line, scale):
    """MATLAB's `imresize(line, 1/scale)` of a column of samples, as its help describes it: a loop for each sample."""
    count, found = len(line), []
    for i in range(count // scale):
        center = (i + 0.5) * scale - 0.5
        places = np.arange(int(center - 2 * scale) - 1, int(center + 2 * scale) + 3)
        x = np.abs((places - center) / scale)
        near, far = 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
        weights = np.where(x <= 1, near, np.where(x < 2, far, 0))
        at = np.where(places < 0, -1 - places, np.where(places >= count, 2 * count - 1 - places, places))
        found.append(weights / weights.sum() @ line[at])
    return np.array(found)


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_shrinks_as_matlab_does(scale):
    got = degradation.shrunk(IMAGES, scale).numpy()
    rows = np.stack([imresize(image.reshape(24, -1), scale).reshape(-1, 36, 3) for image in IMAGES])
    columns = [imresize(image.swapaxes(0, 1).reshape(36, -1), scale) for image in rows]
    wanted = np.stack([one.reshape(36 // scale, -1, 3).swapaxes(0, 1) for one in columns])
    np.testing.assert_allclose(got, wanted, atol=2e-3)


@pytest.mark.parametrize("scale", [2, 3, 4])
def test_shrinks_as_pillow_does_away_from_the_edge(scale):
    got = degradation.shrunk(IMAGES, scale).numpy()[:, 2:-2, 2:-2]
    small = [Image.fromarray(i.astype("uint8")).resize((36 // scale, 24 // scale), Image.BICUBIC) for i in IMAGES]
    np.testing.assert_allclose(got.clip(0, 255), np.stack(small)[:, 2:-2, 2:-2], atol=1.5)  # which rounds twice


def test_noise_has_its_deviation_and_depends_on_the_seed_alone():
    gray = np.full((2, 64, 64, 3), 128, "float32")
    got, again, other = (degradation.degraded(gray, Restore(noise=9.0), seed) for seed in (SEED, SEED, (1, 3)))
    np.testing.assert_array_equal(got, again)
    assert 8.7 < np.std(got) < 9.3 and abs(np.mean(got) - 128) < 0.5 and np.any(got != other)
    np.testing.assert_array_equal(got, np.rint(got))


@pytest.mark.parametrize("channels", [1, 3])
def test_compresses_like_pillow(channels):
    images = tf.image.resize(IMAGES[..., :channels], (48, 72)).numpy().round()
    got = degradation.degraded(images, Restore(jpeg=30), SEED).numpy()
    file = io.BytesIO()
    Image.fromarray(images[0].astype("uint8").repeat(4 - channels, -1)[..., :3]).save(file, "JPEG", quality=30)
    wanted = np.asarray(Image.open(file), "float32")[..., :channels]
    assert np.abs(got[0] - wanted).mean() < 3 < np.abs(got[0] - images[0]).mean()


def test_gray_is_the_brightness():
    got = degradation.degraded(IMAGES, Restore(gray=True), SEED).numpy()
    np.testing.assert_allclose(got, IMAGES @ np.float32([[0.2989], [0.587], [0.114]]), atol=0.51)


def test_squares_are_covered():
    ones = np.ones((50, 24, 40, 3), "float32")
    got = degradation.degraded(ones, Restore(mask=0.25), SEED).numpy()
    assert set(np.unique(got)) == {0, 1} and 0.7 < got.mean() < 0.8
    squares = got.reshape(50, 3, 8, 5, 8, 3)
    assert (squares.min((2, 4, 5)) == squares.max((2, 4, 5))).all()
    odd = degradation.degraded(ones[:, :9, :20], Restore(mask=0.5), SEED).numpy()
    assert odd.shape == (50, 9, 20, 3) and (odd[:, :, :8] == odd[:, :, :1]).all()


def test_sizes_that_are_known_stay_so():
    task = Restore(scale=2, noise=1.0, jpeg=80, mask=0.1)
    images = tf.data.Dataset.from_tensor_slices(IMAGES).batch(2).map(lambda x: degradation.degraded(x, task, (0, 1)))
    assert images.element_spec.shape.as_list() == [None, 12, 18, 3]


def test_images_of_any_size_go_through_a_dataset():
    task = Restore(scale=2, noise=1.0, jpeg=80, mask=0.1)
    images = tf.data.Dataset.from_generator(
        lambda: (np.zeros((1, n, 2 * n, 3), "float32") for n in (8, 12)),
        output_signature=tf.TensorSpec((1, None, None, 3)),
    )
    shapes = [one.shape for one in images.map(lambda x: degradation.degraded(x, task, (0, 1))).as_numpy_iterator()]
    assert shapes == [(1, 4, 8, 3), (1, 6, 12, 3)]
