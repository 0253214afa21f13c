import numpy as np

from keras_vit import plots


def test_depth_shows_patches_and_prefix_tokens_apart(tmp_path):
    norms = np.arange(1.0, 1 + 3 * 2 * 7).reshape(3, 2, 7)
    figure = plots.plot_depth([[0.1, 0.3], [0.4, 0.6], [0.8, 1.0]], norms, num_prefix=1)
    left, right = figure.axes
    np.testing.assert_allclose(left.lines[0].get_ydata(), [0.2, 0.5, 0.9])
    median, longest, prefix = (line.get_ydata() for line in right.lines)
    np.testing.assert_allclose(median, np.median(norms[:, :, 1:], axis=(1, 2)))
    np.testing.assert_allclose(longest, norms.max((1, 2)))
    np.testing.assert_allclose(prefix, norms[:, :, 0].mean(1))
    figure.savefig(tmp_path / "depth.png")
    assert len(plots.plot_depth([[0.1, 0.3]], norms[:1]).axes[1].lines) == 2
