import math

import pytest

from keras_vit.config import choices
from keras_vit.config.choices import Range


@pytest.mark.parametrize(
    "text, values",
    [
        ("6,8", [6, 8]),
        ("1e-3, 3e-4,0.001", [1e-3, 3e-4]),
        ("adamw,sgd", ["adamw", "sgd"]),
        ("(112,160),(128,)", [(112, 160), (128,)]),
        ("[1,2],{'a': (1, 2)}", [[1, 2], {"a": (1, 2)}]),
        ("'a,b',c", ["a,b", "c"]),
        ("folder:../x", ["folder:../x"]),
        ("true,None", [True, None]),
        ("1e-5..1e-3", Range(1e-5, 1e-3)),
        ("0..0.5", Range(0, 0.5)),
        ("4..8", Range(4, 8)),
        ([1, 1, 2], [1, 2]),
        ((1, 2), [(1, 2)]),
    ],
)
def test_values_of_an_option(text, values):
    assert choices.choices("name", text) == values


def test_wrong_values_are_named():
    for text in ("", "1,", " ", [], ""):
        with pytest.raises(ValueError, match="must have values for each option. Received: a="):
            choices.choices("a", text)
    with pytest.raises(ValueError, match="must be low..high, such as 1e-5..1e-3. Received: a=3..1"):
        choices.choices("a", "3..1")
    with pytest.raises(ValueError, match="A change must be name=value"):
        choices.read(["model.depth"])


def test_all_combinations_or_draws():
    grid = choices.read(["a=1,2", "b=x", "c=3,4"])
    assert [list(one.values()) for one in choices.combinations(grid)] == [
        [1, "x", 3], [1, "x", 4], [2, "x", 3], [2, "x", 4]
    ]  # fmt: skip
    assert choices.combinations(grid, 9) == choices.combinations(grid)
    assert len({repr(one) for one in choices.combinations(grid, 3)}) == 3
    space = choices.read(["rate=1e-5..1e-3", "drop=0..0.5", "depth=4..6"])
    drawn = choices.combinations(space, 40)
    assert choices.combinations(space, 5) == drawn[:5]
    assert {one["depth"] for one in drawn} == {4, 5, 6} and all(0 <= one["drop"] <= 0.5 for one in drawn)
    rates = [one["rate"] for one in drawn]
    assert all(1e-5 <= rate <= 1e-3 and rate == float(f"{rate:.3g}") for rate in rates)
    assert 8 < sum(math.log10(rate) < -4 for rate in rates) < 32  # log-uniform
    for options, draw, message in (
        (space, None, "A range needs a number of draws, such as --draw 10. Received: rate without"),
        (choices.read(["a=1"]), None, "an option with two values or more. Received: a"),
        ({}, 3, "Received: none"),
        ({"a": list(range(101)), "b": list(range(100))}, None, "at most 10,000 runs. Received: 10,100"),
    ):
        with pytest.raises(ValueError, match=message):
            choices.combinations(options, draw)


def test_a_directory_says_its_options():
    changes = {"model.depth": 6, "optim.learning_rate": 1e-3, "data.source": "folder:a/b", "task.head.depth": 2}
    assert choices.label(changes, ["optim.learning_rate", "model.depth"]) == "learning_rate=0.001,depth=6"
    assert choices.label(changes, ["model.depth", "task.head.depth"]) == "model.depth=6,task.head.depth=2"
    named = choices.label(changes, ["data.source"])
    assert named.startswith("source=folder_a_b-") and named != choices.label(
        {"data.source": "folder:a_b"}, ["data.source"]
    )
    assert len(choices.label({"a": "x" * 400}, ["a"])) < 200
