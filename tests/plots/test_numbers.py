import numpy as np
import pytest

from keras_vit.plots import numbers


def test_points_or_their_density_around_the_line(monkeypatch):
    truth = np.random.default_rng(0).normal(size=(30, 2))
    figure = numbers.plot_numbers(truth, truth, ["a", "b"])
    assert [axis.get_xlabel() for axis in figure.axes] == ["true a", "true b"]
    points, line = figure.axes[0].lines
    np.testing.assert_array_equal(points.get_xdata(), truth[:, 0])
    assert [*line.get_xdata()] == [*line.get_ydata()] == [truth[:, 0].min(), truth[:, 0].max()]
    monkeypatch.setattr(numbers, "MANY", 10)
    assert len(numbers.plot_numbers(truth, truth, ["a", "b"]).axes[0].lines) == 1
    with pytest.raises(ValueError, match=r"Received: shapes \(30, 2\) and \(30, 2\), 1 names"):
        numbers.plot_numbers(truth, truth, ["a"])
