"""What `save_checkpoint` writes of the evaluation's rule, and what it says that it cannot."""

import re
import warnings

import pytest

from keras_vit import from_checkpoint, save_checkpoint, vit
from tests.checkpoints.helpers import SMALL

pytestmark = pytest.mark.backend

OPTIONS = {**SMALL, "depth": 1, "block": {"gelu": "exact"}, "norm": {"epsilon": 1e-12}}
PREPARED = {"interpolation": "bicubic", "antialias": True}
ODD = {"resize": "squash", "crop_pct": 16 / 19, **PREPARED}  # 19 - 16 is odd, and 28 - 24 is not
RULES = [  # a rule, and what timm's and transformers' files do not record of it: `None` if they give the same pixels
    ({}, "antialias=False", "antialias=False"),
    ({"antialias": True}, None, None),
    ({"resize": "direct", "crop_offset": "floor", **PREPARED}, None, None),
    ({"resize": "window", "antialias": True}, "resize='window'", "resize='window'"),
    ({"resize": "aspect", "antialias": True}, "resize='aspect'", "resize='aspect'"),
    ({"interpolation": "area"}, "interpolation='area'", "interpolation='area'"),
    ({"resize": "crop", "crop_pct": 0.9, **PREPARED}, None, "crop_offset='round', resize='crop'"),  # of an oblong
    ({"resize": "crop", "crop_pct": 0.9, "crop_offset": "floor", **PREPARED}, "crop_offset='floor'", "resize='crop'"),
    (ODD, None, "crop_offset='round'"),
    ({**ODD, "crop_offset": "floor"}, "crop_offset='floor'", None),
    ({**ODD, "crop_pct": [16 / 20, 24 / 26], "crop_offset": "floor"}, r"crop_pct=\[0.8, 0.923\d*\]", None),
    ({"antialias": True, "full_size": [17, 25]}, r"full_size=\[17, 25\]", r"full_size=\[17, 25\]"),
]


def saved(model, path, form):
    """Saves a model; returns what the warning says of its images."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        save_checkpoint(model, path, format=form)
    return " ".join(str(each.message) for each in caught if "Readers of" in str(each.message))


def test_what_a_format_does_not_say_of_the_images_is_a_warning(tmp_path):
    """By the pixels of timm 1.0.31 and transformers 5.24, which were compared with `preprocess` for each of these."""
    model = vit(**{**OPTIONS, "image_size": (16, 24)})
    for i, (rule, timm, huggingface) in enumerate(RULES):
        model.get_layer("rescale").metadata = {"evaluation": rule}
        for form, expected in (("timm", timm), ("huggingface", huggingface)):
            told = saved(model, tmp_path / f"{form}{i}", form)
            pattern = rf"Readers of .* other images than `preprocess`: it does not record {expected}\."
            assert re.search(pattern, told) if expected else not told, (form, rule, told)
            again = from_checkpoint(tmp_path / f"{form}{i}", num_heads=3, image_size=(16, 24))
            kept = again.get_layer("rescale").metadata["evaluation"]
            assert {**rule, **kept} == kept | ({"full_size": [17, 25]} if "full_size" in rule else {})  # by our notes


def test_squares_are_cropped_as_transformers_does(tmp_path):
    model = vit(**{**OPTIONS, "image_size": 16})
    for offset, expected in (("round", "does not record crop_offset='round'."), ("floor", "")):
        model.get_layer("rescale").metadata = {
            "evaluation": {"resize": "crop", "crop_pct": 0.9, "crop_offset": offset, **PREPARED}
        }
        told = saved(model, tmp_path / offset, "huggingface")
        assert told.endswith(expected) and bool(told) == bool(expected)


def test_google_s_files_have_one_rule(tmp_path):
    model = vit(**{**OPTIONS, "image_size": 16, "block": {"gelu": "tanh"}, "norm": {"epsilon": 1e-6}})
    assert not saved(model, tmp_path / "own.npz", "google")
    model.get_layer("rescale").metadata = {"evaluation": {"antialias": True}}
    assert "does not record antialias=True." in saved(model, tmp_path / "other.npz", "google")
