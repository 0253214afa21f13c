import pytest

from keras_vit.preparing.evaluation_rule import DEFAULT, before_crop, checked, crop_start, difference, keeping_aspect
from tests.checkpoints.helpers import unexpected

pytestmark = pytest.mark.backend


def rule(**entries):
    return {**DEFAULT, "crop_pct": 0.875, **entries}


def test_lengths_before_the_crop():
    assert before_crop((224, 224), rule()) == [256, 256]
    assert before_crop((64, 96), rule(crop_pct=0.9)) == [71, 106]
    assert before_crop((64, 64), rule(crop_pct=[64 / 72, 64 / 96])) == [72, 96]
    assert before_crop((224, 224), rule(crop_pct=224 / 235)) == [235, 235]  # though the quotient may be 234.99...


def test_libraries_halve_odd_numbers_in_their_own_way():
    shape, size = (231, 229), (224, 226)  # 7 and 3 are left
    assert crop_start(shape, size, rule(crop_offset="floor")) == [3, 1]
    assert crop_start(shape, size, rule()) == [4, 2]
    assert crop_start((229, 224), (224, 224), rule()) == [2, 0]  # round(2.5): to the even number, as torchvision


def test_what_prepares_other_images():
    crop, squash = rule(resize="crop"), rule(resize="squash")
    cases = [
        (crop, crop, {}),
        (rule(antialias=True), rule(), {"antialias": True}),
        (rule(interpolation="area"), rule(interpolation="area", antialias=True), {}),
        (rule(crop_offset="floor"), rule(crop_pct=None), {}),  # nothing is cropped
        ({**crop, "crop_offset": "floor"}, crop, {"crop_offset": "floor"}),
        ({**squash, "crop_offset": "floor"}, squash, {}),  # 256 - 224 is even
        (
            {**squash, "crop_pct": 224 / 235, "crop_offset": "floor"},
            {**squash, "crop_pct": 224 / 235},
            {"crop_offset": "floor"},
        ),
        ({**squash, "crop_pct": 224 / 229, "crop_offset": "floor"}, {**squash, "crop_pct": 224 / 229}, {}),  # of 5: 2
        ({**squash, "crop_pct": 1.0}, rule(), {}),
        ({**crop, "crop_pct": 0.9}, crop, {"crop_pct": 0.9}),
        (rule(resize="aspect"), crop, {"resize": "aspect"}),
        (rule(full_size=[230, 230]), rule(), {"full_size": [230, 230]}),
        (rule(as_floats=True), rule(), {}),  # bilinear, and nothing to round
        (rule(as_floats=True, antialias=True), rule(antialias=True), {"as_floats": True}),
    ]
    found = [difference(ours, theirs, (224, 224)) for ours, theirs, _ in cases]
    assert found == [expected for *_, expected in cases]


def test_invalid_rules_are_named():
    whole = rule(full_size=[224, 224])
    for kind in ("direct", "crop", "squash", "window", "aspect"):
        assert checked({**whole, "resize": kind})["resize"] == kind
    assert not unexpected(
        (lambda entries=entries: checked({**whole, **entries}), pattern)
        for entries, pattern in [
            ({"resize": "stretch"}, "resize='stretch'"),
            ({"crop_offset": "ceil"}, "crop_offset='ceil'"),
            ({"interpolation": "lanczos"}, "interpolation='lanczos'"),
            ({"resize": "crop", "crop_pct": [0.9, 0.9]}, "crop_pct=.0.9, 0.9."),
            ({"resize": "squash", "crop_pct": [0.9, 1.9]}, "crop_pct=.0.9, 1.9."),
            ({"full_size": "384"}, "full_size='384'"),
        ]
    )


def test_the_size_that_keeps_the_aspect():
    """Worked out by hand from transformers' rule: the scale nearer to 1, then multiples."""
    keeping = keeping_aspect
    assert keeping((480, 640), (518, 518), 14) == (518, 686)  # by 518 / 480, not by 518 / 640
    assert keeping((3000, 4000), (518, 518), 14) == (518, 686)
    assert keeping((100, 200), (518, 518), 14) == (252, 518)  # by the smaller factor; 18.5 patches become 18
    assert keeping((384, 384), (384, 384)) == (384, 384)
    assert keeping((10, 1000), (28, 28), 14) == (14, 28)  # one patch at least
