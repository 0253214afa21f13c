import numpy as np
import pytest

from keras_vit import plots


def test_each_image_next_to_its_reconstruction(tmp_path):
    rng = np.random.default_rng(0)
    images, masked, reconstructed = rng.integers(0, 256, (3, 3, 6, 8, 3)).astype("uint8")
    figure = plots.plot_reconstruction(images, masked, reconstructed)
    drawn = [axis.images[0].get_array() for axis in figure.axes if axis.images]
    wanted = [column[i] for i in range(3) for column in (images, masked, reconstructed)]
    np.testing.assert_allclose(drawn, np.array(wanted) / 255, atol=1e-6)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[:6] == ["image", "masked", "reconstruction"] * 2 and not any(titles[6:])
    figure.savefig(tmp_path / "figure.png")
    with pytest.raises(ValueError, match="must have one shape. Received"):
        plots.plot_reconstruction(images, masked[:2], reconstructed)
