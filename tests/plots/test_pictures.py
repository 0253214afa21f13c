import numpy as np
import pytest

from keras_vit import plots


def test_each_picture_has_its_title(tmp_path):
    pictures = [np.full((4, 8, 3), value, "uint8") for value in (0, 100, 200)]
    figure = plots.plot_pictures(pictures, ["a", "$b$", "c"], across=2)
    assert [axis.get_title(loc="left") for axis in figure.axes[:3]] == ["a", r"\$b\$", "c"]
    assert figure.axes[1].images[0].get_array().mean() == pytest.approx(100 / 255)
    figure.savefig(tmp_path / "pictures.png")


def test_bad_input_is_named():
    for pictures, titles in (([], None), ([np.zeros((2, 2, 3))], ["a", "b"])):
        with pytest.raises(ValueError, match=f"Received: {len(pictures)} pictures"):
            plots.plot_pictures(pictures, titles)
