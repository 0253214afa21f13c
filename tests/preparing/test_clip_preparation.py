import numpy as np
import pytest

from keras_vit import preprocess, video_vit
from keras_vit.preparing.clip_preparation import frames_rule
from tests.checkpoints.helpers import unexpected
from tests.clipfiles import animated, moving

CLIP = moving(9, 8, 12)
SMALL = dict(variant=None, frames=4, image_size=(8, 12), patch_size=4, width=8, depth=1, num_heads=2, num_classes=2)


def small(**options):
    return video_vit(**{**SMALL, **options})


def test_frames_are_chosen_by_the_metadata(tmp_path):
    path = animated(tmp_path / "a.apng", CLIP)
    for metadata, wanted in (
        (None, [2, 3, 4, 5]),
        ({"frames": {"stride": 2}}, [1, 3, 5, 7]),
        ({"evaluation": {"frames": {"stride": 8, "segments": False}}}, [0, 8, 8, 8]),
        ({"frames": {"segments": True}}, [1, 3, 5, 7]),
        ({"frames": {"stride": 2, "centered": True}}, [0, 2, 4, 6]),
    ):
        model = small(metadata=metadata)
        for given in (CLIP, path, str(path), [CLIP], CLIP[None]):
            found = preprocess(model, given)
            assert found.dtype == "float32"
            np.testing.assert_array_equal(found[0], CLIP[wanted])
    assert preprocess(small(), [path, CLIP]).shape == (2, 4, 8, 12, 3)
    assert preprocess(small(channels=1), path).shape == (1, 4, 8, 12, 1)


def test_the_middle_counts_by_time(tmp_path):
    still = np.concatenate([CLIP, np.repeat(CLIP[-1:], 11, 0)])  # the last frame of the file stands for twelve
    path = animated(tmp_path / "a.gif", still)
    model = small(metadata={"frames": {"stride": 2, "centered": True}})
    np.testing.assert_array_equal(preprocess(model, path)[0], still[[6, 8, 10, 12]])
    np.testing.assert_array_equal(preprocess(model, still)[0], still[[6, 8, 10, 12]])


def test_all_frames_are_resized_by_the_rule():
    rule = {"resize": "crop", "crop_pct": 0.5, "interpolation": "bilinear", "antialias": True}
    large = np.random.default_rng(0).integers(0, 256, (4, 40, 30, 3)).astype("uint8")
    found = preprocess(small(image_size=8, metadata={"evaluation": rule}), large)
    from keras_vit import vit

    image = vit("mu/4", image_size=8, depth=1, metadata={"evaluation": rule})
    np.testing.assert_array_equal(found[0], preprocess(image, [*large]))


def test_bad_clips(tmp_path):
    model = small()
    (tmp_path / "a.gif").write_bytes(b"x")
    calls = [
        (lambda: preprocess(model, tmp_path / "a.gif"), "a.gif' cannot be read as a clip"),
        (lambda: preprocess(model, CLIP[0]), r"must have the shape \(batch, frames, height, width, 3\)"),
        (lambda: preprocess(model, []), "must contain a clip. Received: an empty list"),
        (lambda: preprocess(model, CLIP / 255.0), "multiply by 255"),
        (lambda: preprocess(model, CLIP[:0]), r"Received: shape=\(1, 0, 8, 12, 3\)"),
        (lambda: frames_rule(small(metadata={"frames": {"stride": 0}})), "must have a stride and segments"),
    ]
    assert not unexpected(calls)
    with pytest.raises(TypeError, match="Clips must be files or arrays, or a list of them. Received: int"):
        preprocess(model, 3)
