"""Texts of all figures, of 1, 12 and 100 classes with long and wide names: inside the figure, none on another."""

import io
import warnings

import numpy as np
import pytest

from keras_vit import plots
from keras_vit.explain import calibration, per_class
from keras_vit.plots import canvas, lettering
from keras_vit.plots.curves import draw_curves
from keras_vit.plots.labels import plot_precisions
from keras_vit.plots.numbers import plot_numbers
from keras_vit.plots.pairs import plot_pairs
from tests.figures import contrast, faint, outside, overlapping
from tests.marks import few, slow

LETTERS = "猫犬"
RNG = np.random.default_rng(0)
NAMES = {"long": "a name of forty letters that is long {:03d}", "wide": "M" * 37 + "{:03d}"}


def images(count, shape=(24, 24)):
    return RNG.integers(0, 255, (count, *shape, 3)).astype("uint8")


def of_images(count, shape, names):
    titles, maps = [names[i % len(names)] for i in range(count)], RNG.random((count, 3, 3))
    some = images(count, shape)
    words = [(names * 5)[:5]] * count
    yield plots.plot_pictures(list(some), titles)
    yield plots.plot_maps(some, maps, titles)
    yield plots.plot_words(some, RNG.random((count, 5, 3, 3)), words, titles)
    yield plots.plot_neighbors(some, some, RNG.integers(0, count, (count, 3)), titles)
    yield plots.plot_masks(some, RNG.integers(0, len(names), (count, *shape)), names)
    yield plots.plot_clips(RNG.integers(0, 255, (count, 8, *shape, 3)), RNG.random((count, 4, 3, 3)), titles)
    yield plots.plot_reconstruction(some, some, some)
    yield plots.plot_heads(some[0], RNG.random((count, count, 3, 3)))
    yield plots.plot_patches(some[0], maps, [(0, i % 3) for i in range(count)])
    yield plot_pairs(some, titles, titles, [0] * count)


def of_scores(names):
    count = len(names)
    labels = RNG.integers(0, count, 200)
    found = np.where(RNG.random(200) < 0.7, labels, RNG.integers(0, count, 200))
    matrix, logits = RNG.integers(0, 50, (count, count)), RNG.normal(size=(200, count)) + 4 * np.eye(count)[labels]
    yield plots.plot_precision(np.sort(RNG.random((101, count)), 0)[::-1], names)
    yield plots.plot_iou(matrix + 99 * np.eye(count, dtype=int), names)
    yield plots.plot_pixels(matrix, names)
    yield plots.plot_quality(RNG.random(count), names)
    yield plots.plot_confusion(labels, found, names)
    yield plots.plot_embedding(RNG.normal(size=(200, 2)), labels, names)
    yield plot_precisions(RNG.random(count), names, RNG.integers(1, 99, count), np.full(count, 100))
    if count > 1:
        yield plots.plot_per_class(per_class(labels, logits), names)
        yield draw_curves(names, lambda i: (labels == i, logits[:, i]))
    if count <= 12:
        yield plot_numbers(RNG.normal(size=(50, count)), RNG.normal(size=(50, count)), names)
        yield plots.plot_history({name: {"loss": [3, 2, 1], "val_loss": [3, 2, 2]} for name in names})
        each = ["loss", *(f"a metric with a rather long name {i}" for i in range(count))]
        yield plots.plot_history({name: [1.0, 2.0] for one in each for name in (one, f"val_{one}")})


@slow
@few(1)
@pytest.mark.parametrize("count, shape", [(2, (64, 16)), (1, (24, 24)), (12, (16, 64))])
@pytest.mark.parametrize("kind", NAMES)
def test_texts_of_images_are_seen(kind, count, shape):
    names = [NAMES[kind].format(i) for i in range(count)]
    for number, figure in enumerate(of_images(count, shape, names)):
        assert (number, outside(figure), overlapping(figure)) == (number, [], [])


@slow
@few(2)
@pytest.mark.parametrize("count", [12, 1, 100])
@pytest.mark.parametrize("kind", list(reversed(NAMES)))
def test_texts_of_scores_are_seen(kind, count):
    for number, figure in enumerate(of_scores([NAMES[kind].format(i) for i in range(count)])):
        assert (number, outside(figure), overlapping(figure)) == (number, [], [])


def test_one_image_has_its_whole_heading():
    figure = plots.plot_maps(images(1), np.ones((1, 3, 3)))
    lettering.heading(figure, "Attention rollout: what attention reads most, whatever the prediction, in words " * 2)
    assert outside(figure) == overlapping(figure) == []


def test_a_text_is_broken_between_words_and_cut_at_the_end():
    assert lettering.fitted("a few words", 9) == "a few words"
    lines = lettering.fitted("a few words that need two lines", 1.2).split("\n")
    assert len(lines) == 2 and max(map(lettering.width, lines)) <= 1.2
    assert " ".join(lines) == "a few words that need two lines"
    long = lettering.fitted("M" * 99, 1, most=3)
    assert long.endswith("…") and long.count("\n") == 2 and lettering.width(long) <= 1
    assert lettering.fitted("", 1) == "" and lettering.fitted("$x$", 3) == r"\$x\$"


def test_a_legend_of_many_says_how_many_are_left_out():
    figure = plots.plot_masks(images(1), RNG.integers(0, 99, (1, 24, 24)), [f"class {i}" for i in range(99)])
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()][-1] == f"and {99 - lettering.MOST} more"


def test_text_has_contrast_on_every_color():
    from matplotlib.colors import to_rgb

    for color in RNG.random((200, 3)):
        assert contrast(color, to_rgb(canvas.ink(color))) > 4.5


def test_texts_of_all_figures_differ_from_a_light_and_a_dark_page():
    names = [f"class {i}" for i in range(12)]
    calibrated = calibration(RNG.integers(0, 3, 90), RNG.dirichlet([1, 1, 1], 90))
    others = [
        plots.plot_calibration(calibrated),
        plots.plot_roc(np.arange(90) % 2, RNG.normal(size=(90, 2))),
        plots.plot_distance(RNG.random((4, 3))),
    ]
    for number, figure in enumerate([*of_scores(names), *of_images(2, (24, 24), names), *others]):
        assert (number, faint(figure)) == (number, [])


def test_faint_texts_are_found():
    """Gray ones, black ones on a bar (white on a dark page, where the bar stays), dark ones on a dark page alone."""
    for color, bar, grounds in (
        ("#999999", None, ["#ffffff"]),
        ("#000000", "#56B4E9", ["#14161a"]),
        ("#010101", None, ["#14161a"]),
        ("white", None, ["#ffffff"]),
        ("#777777", None, ["#ffffff", "#14161a"]),
        ("#767676", "white", []),
        ("white", "#0072B2", []),
    ):
        figure = canvas.figure(2, 2)
        axis = figure.subplots()
        axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
        if bar:
            axis.barh([0.5], [1], 1, color=bar)
        axis.text(0.5, 0.5, "text", color=color, ha="center")
        assert [ground for _, ground, _ in faint(figure)] == grounds, color


def test_letters_that_no_font_has_are_told_once(monkeypatch, capsys):
    monkeypatch.setattr(lettering, "families", lambda: ["DejaVu Sans"])
    with pytest.warns(UserWarning, match="No installed font has '猫', '犬': boxes are drawn. Install one") as told:
        plots.plot_confusion([0, 1], [0, 1], ["猫", "犬"]).savefig(io.BytesIO())
    assert len(told) == 1


def small_font(path, letters):
    """Writes a font in which each of the letters is a bar, the second twice as high as the first, and so on."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen

    names = {ord(letter): f"letter{i}" for i, letter in enumerate(letters)}
    glyphs = {".notdef": TTGlyphPen(None).glyph()}
    for i, name in enumerate(names.values()):
        pen = TTGlyphPen(None)
        pen.moveTo((100, 0))
        for place in ((100, 400 * (i + 1)), (900, 400 * (i + 1)), (900, 0)):
            pen.lineTo(place)
        pen.closePath()
        glyphs[name] = pen.glyph()
    font = FontBuilder(1000, isTTF=True)
    font.setupGlyphOrder([*glyphs])
    font.setupCharacterMap(names)
    font.setupGlyf(glyphs)
    font.setupHorizontalMetrics(dict.fromkeys(glyphs, (1000, 0)))
    font.setupHorizontalHeader(ascent=900, descent=-100)
    font.setupNameTable({"familyName": "Noto Sans CJK JP", "styleName": "Regular"})
    font.setupOS2()
    font.setupPost()
    font.save(path)


@pytest.fixture(params=["one of a test", "an installed one"])
def other_font(request, tmp_path, monkeypatch):
    """A font with two Chinese letters that matplotlib finds."""
    from matplotlib import font_manager

    if request.param == "one of a test":
        small_font(tmp_path / "small.ttf", LETTERS)
        monkeypatch.setattr(font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist])
        font_manager.fontManager.addfont(tmp_path / "small.ttf")
    for cache in (lettering.families, lettering._width):
        cache.cache_clear()
    paths = [font_manager.findfont(family) for family in lettering.families()[1:]]
    if not any({*map(ord, LETTERS)} <= font_manager.get_font(path).get_charmap().keys() for path in paths):
        pytest.skip("No font with Chinese or Japanese letters is installed, such as fonts-noto-cjk")
    yield
    for cache in (lettering.families, lettering._width):
        cache.cache_clear()


def test_letters_of_other_scripts_are_drawn_with_their_font(other_font):
    """Two letters look different, where without a font both are the same box: in titles, ticks, legends and boxes."""
    one = images(1)
    drawn = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for letter in LETTERS:
            figures = [
                plots.plot_pictures(list(one), [letter]),
                plots.plot_masks(one, np.ones((1, 24, 24), int), ["background", letter]),
                plots.plot_iou(np.ones((2, 2), int), ["a", letter]),
            ]
            written = [io.BytesIO() for _ in figures]
            for figure, file in zip(figures, written):
                figure.savefig(file)
            mask = bytes(lettering.for_pillow(letter, 30).getmask(letter))
            drawn.append([*(file.getvalue() for file in written), mask])
    assert all(a != b for a, b in zip(*drawn)) and len(drawn[0]) == 4
    assert 0 < lettering.width(LETTERS[0]) < 3 * lettering.width("W")


def test_installed_fonts_of_other_scripts_are_asked(monkeypatch):
    class Font:
        name = "Noto Sans CJK JP"

    lettering.families.cache_clear()
    monkeypatch.setattr("matplotlib.font_manager.fontManager.ttflist", [Font])
    assert lettering.families() == ["DejaVu Sans", "Noto Sans CJK JP"]
    lettering.families.cache_clear()
