import pytest

from keras_vit.checkpoints.request import Options


def test_options_are_checked_and_a_grid_is_a_pair():
    assert Options(grid=3).checked(("timm",)).grid == (3, 3)
    for options, said in (
        (Options(format="jax"), "format"),
        (Options(head="old"), "head"),
        (Options(resample="cubic"), "resample"),
        (Options(patches="crop"), "patches"),
    ):
        with pytest.raises(ValueError, match=f"`{said}` must be one of .* Received: {said}="):
            options.checked(("timm",))


def test_what_differs_from_the_usual():
    assert Options().changed() == {} == Options(patches="resize").changed(patches="resize")
    assert Options(grid=(2, 3)).changed(patches="resize") == {"patches": "require", "grid": (2, 3)}
