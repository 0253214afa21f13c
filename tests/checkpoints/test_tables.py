import re

import numpy as np
import pytest

from keras_vit.checkpoints import tables
from keras_vit.checkpoints.describe import FORMATS
from keras_vit.utils.resampling import METHODS

pytestmark = pytest.mark.backend

RNG = np.random.default_rng(0)
# How each form's arrays look on our side, with 2 heads.
OURS = {
    "SAME": [(5,)],
    "LINEAR": [(3, 4)],
    "CONV": [(2, 3, 4, 5)],
    "GROUP_NORM": [(4,)],
    "HEADS_IN": [(3, 4)],
    "HEADS_OUT": [(4, 3)],
    "HEADS_BIAS": [(4,)],
    "LINEAR_HEADS_IN": [(4, 2, 2)],
    "LINEAR_HEADS_OUT": [(2, 2, 4)],
    "FLAT_TO_HEADS": [(2, 2)],
}


def test_forms_are_inverses():
    for name, shapes in OURS.items():
        form, ours = getattr(tables, name), [RNG.normal(size=shape) for shape in shapes]
        for array, again in zip(ours, form.read(form.write(ours, 2), 2), strict=True):
            np.testing.assert_array_equal(again, array, err_msg=name)


def test_joined_and_parted():
    ours = [RNG.normal(size=(4, 6))]
    theirs = tables.joined(tables.LINEAR).write(ours, 2)
    assert [a.shape for a in theirs] == [(2, 4)] * 3
    np.testing.assert_array_equal(theirs[1].T, ours[0][:, 2:4])
    np.testing.assert_array_equal(tables.joined(tables.LINEAR).read(theirs, 2)[0], ours[0])
    kernel = RNG.normal(size=(8, 4))
    key, value = tables.parted(tables.LINEAR_HEADS_IN).read([kernel], 2)
    np.testing.assert_array_equal(value, kernel[4:].T.reshape(4, 2, 2))
    np.testing.assert_array_equal(tables.parted(tables.LINEAR_HEADS_IN).write([key, value], 2)[0], kernel)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_tables_say_each_thing_once(form):
    values = {name: name for name in ("norm", "root", "head", "fc1", "fc2")}
    rows = [row for row in form.rows if row.form is not tables.UNBIASED]  # heads whose bias may be missing
    theirs = [re.sub(r"\{(\w+)\}", lambda m: values.get(m[1], m[0]), str(row.theirs)) for row in rows]
    twice = form.name in (
        "huggingface",
        "huggingface-beit",
        "huggingface-dpt",
        "huggingface-vitpose",
    )  # DeiT's token has two meanings
    assert len(theirs) == len(set(theirs)) + twice
    assert {form.resample, form.resample_patches} <= set(METHODS)


def test_published_heads():
    heads = {192: 3, 384: 6, 512: 8, 768: 12, 1024: 16, 1152: 16, 1280: 16, 1408: 16, 1536: 24}
    assert {width: tables.published_heads(width)[0] for width in heads} == heads


def test_unpublished_heads():
    heads, why = tables.published_heads(24)
    assert heads is None and "pass num_heads" in why


def test_numbering():
    pattern = re.compile(r"block_(\d+)/")
    assert tables.blocks(["block_1/a", "block_0/a", "head"], pattern) == 2
    for names in ([], ["block_1/a"], ["block_0/a", "block_2/a"]):
        with pytest.raises(ValueError, match="numbered from 0 without a gap"):
            tables.blocks(names, pattern)
    with pytest.raises(ValueError, match="at most 1000 blocks"):
        tables.blocks([f"block_{i}/" for i in range(1001)], pattern)
    pattern = re.compile(r"s(\d)u(\d)")
    assert tables.stages(["s1u1", "s1u2", "s2u1"], pattern) == (2, 1) and tables.stages([], pattern) == ()
    with pytest.raises(ValueError, match="without a gap"):
        tables.stages(["s1u1", "s1u3"], pattern)


def test_needed_tensors():
    shapes = {"a": (2, 3), "b": (0,)}
    assert tables.need(shapes, "a", 2) == (2, 3)
    for name, rank in (("a", 1), ("b", 1), ("c", 2)):
        with pytest.raises(ValueError, match=f"'{name}' with {rank} axes.*the file has a, b"):
            tables.need(shapes, name, rank)


def test_listing():
    assert tables.listing(["b", "a"]) == "a, b"
    assert tables.listing([f"{i:02d}" for i in range(12)]).endswith("09, ... (12 in all)")


def test_grids():
    assert tables.grid(dict(image_size=(32, 64), patch_size=8)) == (4, 8)
    assert tables.channels_of(dict(mean=0.5, channels=3), "mean") == [0.5] * 3


def test_same():
    for one, other in (
        (0.5, [0.5] * 3),
        ((0.5, 0.4), [0.5, 0.4]),
        (None, None),
        ("a", "a"),
        (24, (24, 24)),
        (1e-6, 1e-6),
    ):
        assert tables.same(one, other)
    for one, other in ((0.5, [0.5, 0.4]), (None, 0.5), (1e-12, 1e-6), (True, False), ("a", 1)):
        assert not tables.same(one, other)
