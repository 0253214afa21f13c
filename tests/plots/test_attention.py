import keras
import numpy as np
import pytest

import keras_vit
from keras_vit import attention_relevance, plot_attention, plots
from keras_vit.explain import attention_from
from tests.explain.models import IMAGES, shared


@pytest.mark.parametrize("method", ["rollout", "relevance"])
def test_attention_shows_each_image_and_its_map(method, tmp_path):
    figure = plot_attention(shared("token"), IMAGES, ["a", "b", "c"], method)
    drawn = [axis for axis in figure.axes if axis.images]
    assert len(drawn) == 6 and [axis.get_title("left") for axis in drawn[::2]] == ["a", "b", "c"]
    assert all(len(axis.images) == 1 + i % 2 for i, axis in enumerate(drawn))
    if method == "relevance":
        expected = attention_relevance(shared("token"), IMAGES)
        np.testing.assert_allclose(drawn[3].images[1].get_array(), expected[1], rtol=1e-5)
    figure.savefig(tmp_path / "attention.png")


def test_titles_are_the_classes_that_the_model_carries():
    model = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=3)
    model.get_layer("rescale").metadata = {"labels": ["cat", "dog", "$x_$"]}
    predictions = np.asarray(model(IMAGES)).argmax(-1)
    drawn = [axis for axis in plot_attention(model, IMAGES).figure.axes if axis.images][::2]
    assert [axis.get_title("left") for axis in drawn] == [["cat", "dog", r"\$x_\$"][i] for i in predictions]
    titles = [text.get_title("left") for text in plots.plot_worst(model, IMAGES, (predictions + 1) % 3).axes]
    assert sum(", predicted " in title for title in titles) == 3 and not any(
        title[0] == "0" for title in titles if title
    )


def test_worst_shows_the_mistakes_alone(tmp_path):
    model = shared("token")
    predictions = np.asarray(model(IMAGES)).argmax(-1)
    labels = np.where([True, False, True], predictions, (predictions + 1) % 5)
    names = ["zero", "one", "two", "three", "four"]
    figure = plots.plot_worst(model, IMAGES, labels, names)
    shown, over = (axis for axis in figure.axes if axis.images)
    assert shown.get_title("left").startswith(f"{names[labels[1]]}, predicted {names[predictions[1]]} (")
    np.testing.assert_allclose(shown.images[0].get_array(), IMAGES[1] / 255, atol=1e-6)
    np.testing.assert_allclose(over.images[1].get_array(), attention_relevance(model, IMAGES)[1], rtol=1e-4)
    figure.savefig(tmp_path / "worst.png")
    assert "No mistake in 3 images" in plots.plot_worst(model, IMAGES, predictions).texts[0].get_text()


def test_one_output_is_of_two_classes():
    """A single logit, the probability that a sigmoid makes of it, and two logits give the same pictures."""
    logit = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=1, depth=1)
    kernel = np.random.default_rng(0).normal(size=(32, 1))
    logit.get_layer("head").kernel.assign(kernel)
    logit.get_layer("rescale").metadata = {"labels": ["no", "yes"]}
    z = np.asarray(logit(IMAGES))[:, 0]
    answers = (z > 0).astype(int)
    titles = [axis.get_title("left") for axis in plot_attention(logit, IMAGES, method="relevance").axes if axis.images]
    assert titles[::2] == [["no", "yes"][i] for i in answers]
    sure = 1 / (1 + np.exp(-np.abs(z)))
    wanted = [f"{['no', 'yes'][1 - i]}, predicted {['no', 'yes'][i]} ({p:.0%})" for i, p in zip(answers, sure)]
    probability = keras.Model(logit.input, keras.layers.Activation("sigmoid")(logit.output))
    for model in (logit, probability):
        worst = plots.plot_worst(model, IMAGES, 1 - answers)
        assert sorted(axis.get_title("left") for axis in worst.axes if axis.images)[3:] == sorted(wanted)


def test_the_worst_of_a_model_of_probabilities_has_its_own_numbers():
    logits = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=3, depth=1)
    logits.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(32, 3)))
    shares = keras.Model(logits.input, keras.layers.Softmax()(logits.output))
    labels = (np.asarray(logits(IMAGES)).argmax(-1) + 1) % 3
    figures = [plots.plot_worst(model, IMAGES, labels) for model in (logits, shares)]
    titles = [[axis.get_title("left") for axis in figure.axes if axis.images] for figure in figures]
    assert titles[0] == titles[1] and "predicted" in titles[0][0]


def test_heads_have_a_tile_each(tmp_path):
    maps = attention_from(shared("token"), IMAGES)[:, 0]
    figure = plots.plot_heads(IMAGES[0], maps)
    tiles = [axis for part in figure.subfigs for axis in part.axes][1:]
    assert len(tiles) == 6
    np.testing.assert_array_equal(tiles[3].images[0].get_array(), maps[1, 1])
    assert tiles[1].get_title() == "head 1" and tiles[4].get_ylabel() == "block 2"
    figure.savefig(tmp_path / "heads.png")


def test_patches_are_framed_where_they_are(tmp_path):
    maps = np.stack([np.eye(3)[:, :2], np.eye(3)[:, 1:]])
    figure = plots.plot_patches(IMAGES[0], maps, [(2, 1), (0, 0)])
    image, first, second = (axis for axis in figure.axes if axis.images)
    assert [frame.get_bbox().bounds for frame in image.patches] == [(4, 8, 4, 4), (0, 0, 4, 4)]
    assert first.get_title("left") == "row 2, column 1" and len(second.patches) == 1
    figure.savefig(tmp_path / "patches.png")


def test_distance_shows_every_head(tmp_path):
    figure = plots.plot_distance([[3.0, 1.0], [2.0, 4.0], [5.0, 6.0]])
    (axis,) = figure.axes
    np.testing.assert_array_equal(axis.lines[0].get_ydata(), [2, 3, 5.5])
    np.testing.assert_array_equal(axis.collections[0].get_offsets()[:, 1], [1, 3, 2, 4, 5, 6])
    figure.savefig(tmp_path / "distance.png")


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="method='gaze'"):
        plot_attention(shared("token"), IMAGES, method="gaze")
    with pytest.raises(ValueError, match="3 images and 2 titles"):
        plot_attention(shared("token"), IMAGES, ["a", "b"])
    with pytest.raises(ValueError, match="3 images and 1 maps"):
        plots.plot_maps(IMAGES, np.zeros((1, 3, 2)))
    with pytest.raises(ValueError, match=r"1 patches, maps of shape \(2, 3, 2\)"):
        plots.plot_patches(IMAGES[0], np.zeros((2, 3, 2)), [(0, 0)])
    with pytest.raises(ValueError, match=r"shape=\(3, 2\)"):
        plots.plot_heads(IMAGES[0], np.zeros((3, 2)))


def test_a_row_of_words_for_each_image():
    images, maps = np.zeros((2, 8, 16, 3)), np.ones((2, 12, 2, 4))
    figure = plots.plot_words(images, maps, [["a", "cat"], [*"twelve words"]], ["a cat", "twelve words"])
    titles = [axis.get_title("left") for axis in figure.axes]
    words = [letter.strip() for letter in "twelve words"]
    assert [title.replace("\n", " ") for title in titles] == [
        *("a cat", "a", "cat", *[""] * 15),
        *("twelve words", *words, *[""] * 5),
    ]
    with pytest.raises(ValueError, match=r"must be \(batch, 13 words, .* shape=\(2, 12, 2, 4\)"):
        plots.plot_words(images, maps, [["a"] * 13, []])
