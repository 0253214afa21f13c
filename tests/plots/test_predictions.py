import numpy as np
import pytest

from keras_vit import plots
from keras_vit.explain import calibration, per_class
from keras_vit.utils.metrics import partial_auc

RNG = np.random.default_rng(0)


def test_confusion_counts_images_and_colors_shares(tmp_path):
    figure = plots.plot_confusion([0, 0, 0, 1, 2], [0, 0, 2, 1, 1], ["a", "b", "c"])
    axis = figure.axes[0]
    np.testing.assert_allclose(axis.images[0].get_array(), [[2 / 3, 0, 1 / 3], [0, 1, 0], [0, 1, 0]])
    assert [text.get_text() for text in axis.texts] == list("201010010")
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b", "c"]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("predicted class", "true class")
    figure.savefig(tmp_path / "confusion.png")


def test_confusion_of_names_is_that_of_indices():
    names = np.array(["cat", "dog", "eel"])
    labels, predictions = np.array([0, 0, 0, 1, 2]), np.array([0, 0, 2, 1, 1])
    by_name = plots.plot_confusion(names[labels], names[predictions])
    by_index = plots.plot_confusion(labels, predictions)
    np.testing.assert_array_equal(*(figure.axes[0].images[0].get_array() for figure in (by_name, by_index)))
    assert [label.get_text() for label in by_name.axes[0].get_yticklabels()] == ["cat", "dog", "eel"]


def test_confusion_of_many_classes_stays_readable(tmp_path):
    figure = plots.plot_confusion(np.arange(100), np.arange(100))
    assert [text.get_text() for text in figure.axes[0].texts] == ["1"] * 100  # zeros are left out
    numbers = np.repeat(np.arange(100), 1000)
    assert not plots.plot_confusion(numbers, numbers).axes[0].texts  # 1000 has no room
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == [str(i) for i in range(100)]
    figure.savefig(tmp_path / "confusion.png")


def test_of_hundreds_of_classes_those_with_mistakes_are_named():
    labels, wrong = np.repeat(np.arange(400), 2), [3, 111, 222, 397]
    predictions = np.where(np.isin(labels, wrong) & (np.arange(800) % 2 == 0), 5, labels)
    axis = plots.plot_confusion(labels, predictions).axes[0]
    for ticks in (axis.get_xticklabels(), axis.get_yticklabels()):
        named = [int(label.get_text()) for label in ticks]
        assert {*wrong} <= {*named} and named == sorted(named) and np.diff(named).min() >= 4
    assert axis.get_title("left") == "400 classes. Named, where there is room: those that are most often wrong"


def test_of_more_classes_the_confusions_are_drawn(tmp_path):
    labels, predictions = np.arange(1200), np.arange(1200)
    assert not plots.plot_confusion(labels, predictions).axes[0].patches  # no confusion
    predictions = np.where(labels % 2, labels - 1, labels)
    labels, predictions = np.append(labels, [7, 7]), np.append(predictions, [6, 6])
    axis = plots.plot_confusion([f"c{i}" for i in labels], [f"c{i}" for i in predictions]).axes[0]
    texts, widths = [text.get_text() for text in axis.get_yticklabels()], [bar.get_width() for bar in axis.patches]
    assert len(texts) == 40 and "40 most frequent confusions of 1,200 classes" in axis.get_title()
    assert texts[0] == "c7 (3) → c6" and widths == [3] + [1] * 39
    axis.figure.savefig(tmp_path / "confusions.png")


def test_lowest_recall_comes_first(tmp_path):
    labels, answers = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 1, 0])
    measures = per_class(labels, np.eye(3)[answers])
    axis = plots.plot_per_class(measures, ["a", "b", "c"]).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["c (1)", "a (2)", "b (2)"]
    np.testing.assert_allclose(axis.lines[0].get_xdata(), [0, 0.5, 1])
    figure = plots.plot_per_class(measures, most=2)
    assert "2 of 3 classes" in figure.axes[0].get_title()
    figure.savefig(tmp_path / "per_class.png")


def test_calibration_shows_bins_and_the_error(tmp_path):
    found = calibration([0, 1, 1], [[0.95, 0.05], [0.55, 0.45], [0.2, 0.8]], bins=10)
    figure = plots.plot_calibration(found)
    upper, lower = figure.axes
    assert f"{found.error:.2%}" in upper.get_title()
    assert [bar.get_height() for bar in lower.patches] == found.count.tolist()
    figure.savefig(tmp_path / "calibration.png")


@pytest.mark.parametrize("noise", [0.0, 1.0, 5.0])
def test_roc_shows_the_whole_area_too(noise):
    from sklearn.metrics import roc_auc_score

    labels = np.arange(300) % 2
    logits = np.stack([np.zeros(300), labels + noise * RNG.normal(size=300)], 1)
    area, above = plots.plot_roc(labels, logits).axes[0].get_title().split("\n")
    assert area == f"Area under the curve: {roc_auc_score(labels, logits[:, 1]):.3f}" and above.startswith("above 80% ")


def test_roc_shows_the_partial_area(tmp_path):
    labels = RNG.integers(0, 2, 300)
    logits = np.stack([-labels + RNG.normal(size=300), labels + RNG.normal(size=300)], 1)
    figure = plots.plot_roc(labels, logits)
    assert f"{partial_auc(logits, labels):.3f} of 0.2" in figure.axes[0].get_title()
    false, true = figure.axes[0].lines[1].get_data()
    threshold = np.sort((logits[:, 1] - logits[:, 0])[labels == 1])[-100]  # the hundredth of those to be found
    expected = ((logits[:, 1] - logits[:, 0])[labels == 0] >= threshold).mean()
    np.testing.assert_allclose(np.interp(100 / labels.sum(), true, false), expected, atol=0.01)
    figure.savefig(tmp_path / "roc.png")


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="must be what explain.per_class returns. Received: .*array"):
        plots.plot_per_class(np.arange(3))
    with pytest.raises(ValueError, match="must be what explain.calibration returns. Received: .*array"):
        plots.plot_calibration(np.arange(3))
    with pytest.raises(ValueError, match="2 images and 3 labels"):
        plots.plot_confusion([0, 1, 2], [0, 1])
    with pytest.raises(ValueError, match="must name each of 3 classes. Received: 1 class_names"):
        plots.plot_per_class(per_class([0, 1], np.eye(3)[:2]), ["a"])
    with pytest.raises(ValueError, match=r"2 labels, logits of shape \(2, 3\)"):
        plots.plot_roc([0, 1], np.eye(3)[:2])
