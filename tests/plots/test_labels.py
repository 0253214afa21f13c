from keras_vit.plots import labels


def test_bars_are_of_the_lowest_and_dots_of_chance(monkeypatch):
    figure = labels.plot_precisions([0.9, 0.2, 0.5], ["a", "b", "c"], [3, 1, 2], [10, 4, 0])
    (axis,) = figure.axes
    assert [text.get_text() for text in axis.get_yticklabels()] == ["b (1)", "c (2)", "a (3)"]
    assert [bar.get_width() for bar in axis.patches] == [0.2, 0.5, 0.9]
    assert axis.lines[0].get_xdata().tolist() == [0.25, 2.0, 0.3]
    monkeypatch.setattr(labels, "BARS", 2)
    figure = labels.plot_precisions([0.9, 0.2, 0.5], ["a", "b", "c"], [3, 1, 2], [10, 4, 4])
    assert len(figure.axes[0].patches) == 2 and "2 of 3 classes" in figure.axes[0].get_title()
