import numpy as np
import pytest

from keras_vit.utils import progress
from tests.terminal import Stream


def test_a_line_on_a_terminal_is_updated_in_place_and_never_wraps(clock, columns):
    stream = Stream(True)
    line = progress.Line(stream=stream)
    for text in ("a long line", "short", "x" * 200):
        line.show(text)
        clock[0] += 1
        assert stream.screen == [text[:79]]
    columns(10)
    line.show("y" * 5)
    assert all(len(part) < 10 for part in stream.getvalue().split("\r")[-1:]) and "\n" not in stream.getvalue()
    line.show("too early")
    assert "early" not in stream.getvalue()
    line.end()
    line.end()
    assert stream.getvalue().count("\n") == 1


def test_a_line_is_taken_away(clock, columns):
    stream = Stream(True)
    line = progress.Line(stream=stream)
    line.show("something")
    line.clear()
    assert stream.screen == [""]


def test_elsewhere_a_line_is_written_every_ten_seconds(clock):
    stream = Stream(False)
    line = progress.Line(stream=stream)
    for second in range(35):
        clock[0] = 100.0 + second
        line.show(str(second))
    line.end()
    assert stream.getvalue() == "10\n20\n30\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_batches_are_counted(clock, columns, monkeypatch, terminal):
    stream = Stream(terminal)
    monkeypatch.setattr(progress.sys, "stdout", stream)
    batches = [{"images": np.zeros((10, 2)), "labels": np.zeros(10)}] * 8
    found = []
    for batch in progress.counted(batches, 80, "evaluating"):
        found.append(batch)
        clock[0] += 3
    assert found == batches
    told = "evaluating: 40 of 80, 0:12 left"
    if terminal:
        assert f"\r{told}" in stream.getvalue() and stream.screen == [""]
    else:
        assert stream.getvalue().splitlines() == [told, "evaluating: 80 of 80, 0:00 left"]


def test_what_is_quick_is_not_told(clock, monkeypatch):
    stream = Stream(True)
    monkeypatch.setattr(progress.sys, "stdout", stream)
    assert len(list(progress.counted([np.zeros(3)] * 5, 15))) == 5 and not stream.getvalue()


def test_times():
    assert [progress.duration(t) for t in (-1, 0, 7.4, 83, 7389)] == ["0:00", "0:00", "0:07", "1:23", "2:03:09"]
