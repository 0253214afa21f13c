import io

import numpy as np
import pytest

from keras_vit.utils import progress


class Stream(io.StringIO):
    """What is written, as a terminal or as a file."""

    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal

    @property
    def lines(self):
        """All that was shown, in order, also what was updated in place."""
        return [line.rstrip() for line in self.getvalue().replace("\r", "\n").split("\n") if line.strip()]


@pytest.mark.parametrize("terminal", [True, False])
def test_batches_are_counted(clock, terminal):
    stream, found = Stream(terminal), []
    batches = [{"images": np.zeros((1000, 2)), "labels": np.zeros(1000)}] * 8
    for batch in progress.counted(batches, 8000, "evaluating", stream=stream):
        found.append(batch)
        clock[0] += 3
    assert found == batches
    shown = [f"evaluating: {n},000 of 8,000, 00:{3 * (8 - n):02} left" for n in range(1, 9)]
    assert stream.lines == (shown if terminal else [shown[0], shown[4]])
    assert stream.getvalue().endswith("\r" if terminal else "left\n")  # removed; a log keeps its lines
    assert stream.getvalue().count("\n") == (0 if terminal else 2)
    assert terminal or "\r" not in stream.getvalue()


def test_items_without_a_known_number_are_counted(clock):
    stream, found = Stream(True), []
    for item in progress.passing(iter(range(5)), "rows: {n:,}", 1.0, stream, every=2):
        found.append(item)
        clock[0] += 3
    assert found == [0, 1, 2, 3, 4] and stream.lines == ["rows: 2", "rows: 4"]


def test_answers_that_are_printed_meanwhile_are_alone(clock, capsys):
    for _ in progress.counted([np.zeros(2)] * 2, 4, "texts"):
        print("an answer")
        clock[0] += 30
    out, err = capsys.readouterr()
    assert out == "an answer\n" * 2 and err.startswith("texts: 2 of 4, ")


def test_what_is_quick_is_not_told(monkeypatch):
    stream = Stream(True)
    monkeypatch.setattr("sys.stderr", stream)
    assert len(list(progress.counted([np.zeros(3)] * 5, 15))) == 5 and not stream.getvalue()


def test_a_narrow_terminal_cuts_the_line(monkeypatch):
    monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda stream: (10, 24))
    stream = Stream(True)
    with progress.line(3, [("a line that is too long", 0)], stream=stream):
        pass
    assert {len(line) for line in stream.lines} == {10}


@pytest.mark.parametrize(
    "width, text",
    [
        (None, "epoch 1/3  loss 0.5  accuracy 25%  02:10 left"),
        (45, "epoch 1/3  loss 0.5  accuracy 25%  02:10 left"),
        (44, "epoch 1/3  accuracy 25%  02:10 left"),
        (34, "epoch 1/3  loss 0.5  02:10 left"),
        (30, "epoch 1/3  02:10 left"),
        (12, "epoch 1/3"),
        (5, "epoch"),
    ],
)
def test_what_does_not_fit_is_left_out_whole(width, text):
    parts = [("epoch 1/3", 0), ("loss 0.5", 3), ("accuracy 25%", 2), ("02:10 left", 1)]
    assert progress.fitted(parts, width) == text


def test_what_is_not_known_is_not_asked(clock, monkeypatch):
    monkeypatch.setattr("tqdm.std._screen_shape_wrapper", lambda: lambda stream: (80, 24))
    stream = Stream(True)
    with progress.line(
        8, [("first", 0), (progress.remaining, 1), (progress.pace, 2)], stream=stream, unit=" x"
    ) as line:
        clock[0] += 2
        line.update(4)
    assert stream.lines[:2] == ["first", "first  00:02 left  2.00 x/s"] and "?" not in stream.getvalue()


def test_what_replaces_stdout_may_not_know_terminals():
    class Log(list):
        write, flush = list.append, lambda self: None

    with progress.line(3, [("text", 0)], stream=Log()) as line:
        line.update(3)
