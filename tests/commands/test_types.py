import pathlib
from typing import Annotated

import pytest
import tyro

from keras_vit.commands.types import Count, Flag, Folder, Images, about, whole

Text = Annotated[str, about("N.")]


def take(
    images: Images = (),
    *,
    to: Folder = None,
    most: Count = 7,
    flag: Flag = False,
    name: Annotated[str, about("N.")] = "a",
):
    """Take.

    Args:
        images: Some images.
        to: A folder.
    """
    return images, to, most, flag, name


def test_words_become_values():
    words = ["--to", "here", "--most", "-3", "--flag", "--name", "b", "--", "x", "y"]
    assert tyro.cli(take, args=words) == (("x", "y"), pathlib.Path("here"), -3, True, "b")
    assert tyro.cli(take, args=[]) == ((), None, 7, False, "a")


def test_help_says_defaults_that_there_are(capsys):
    with pytest.raises(SystemExit):
        tyro.cli(take, args=["--help"])
    text = capsys.readouterr().out
    assert "--to DIR" in text and "(default: 7)" in text and "[IMAGE ...]" in text and "A folder." in text
    assert "None" not in text and "False" not in text and text.count("default") == 1


def test_whole_numbers():
    assert whole("-12") == -12
    with pytest.raises(ValueError, match=r"must be a whole number. Received: '1.5'"):
        whole("1.5")
