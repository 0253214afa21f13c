import dataclasses

import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit.config import Augment, ClassifyClips, Data, Optim, Recipe
from keras_vit.data import clip_source, inspection, pipeline
from keras_vit.data.clip_source import Clips, Sampling
from keras_vit.utils.sampling import frame_indices
from tests.clipfiles import animated, moving

NUMBERS = np.arange(6 * 20, dtype="uint8").reshape(6, 20)  # each frame says which it is
ARRAYS = np.broadcast_to(NUMBERS[:, :, None, None, None], (6, 20, 8, 8, 1)).copy()
TARGETS = {"labels": np.arange(6, dtype="int32") % 2}


def recipe(sampling=None, **augment):
    sampling = sampling or Sampling(4, 2)
    task = ClassifyClips(
        frames=sampling.frames,
        stride=sampling.stride,
        sampling="segments" if sampling.segments else "dense",
        classes=("a", "b"),
    )
    return Recipe(
        name="c",
        task=task,
        model=dict(variant=None, image_size=8, channels=1),
        data=Data(source="folder:x", batch_size=3),
        augment=Augment(**augment),
        optim=Optim(epochs=3),
    )


def source(sampling=None, images=ARRAYS, **more):
    return Clips(images, TARGETS, ("a", "b"), sampling=sampling or Sampling(4, 2), **more)


def seen(batches):
    """Returns which frames of which clip are seen, `(clips, frames)`, where each pixel is its frame's number."""
    found = np.concatenate([np.asarray(x) for x, _ in batches])
    assert np.ptp(found, axis=(2, 3, 4)).max() < 1e-3
    return np.rint(found[:, :, 0, 0, 0]).astype(int)


def training(own, settings, first=0, step=0):
    """Returns the two batches of an epoch, or those from `step` on."""
    return pipeline.training_batches(own, settings, (4, 8, 8, 1), first_epoch=first, first_step=step).take(2 - step)


def test_evaluation_sees_the_middle_of_every_clip_in_order():
    found = seen(pipeline.evaluation_batches(source(), recipe(), (4, 8, 8, 1)))
    np.testing.assert_array_equal(found, NUMBERS[:, frame_indices(20, 4, 2)])


def test_training_draws_a_start_for_each_clip_and_epoch_and_repeats_itself():
    own, settings = source(), recipe()
    epochs = [seen(training(own, settings, first)) for first in range(3)]
    for found in epochs:
        assert (np.diff(found, axis=1) == 2).all() and sorted(found[:, 0] // 20) == list(range(6))
    starts = np.array([found[np.argsort(found[:, 0])][:, 0] % 20 for found in epochs])
    assert len(np.unique(starts)) > 4 and starts.max() <= 13
    assert (starts.std(axis=0) > 0).any()
    np.testing.assert_array_equal(seen(training(own, settings, 1)), epochs[1])
    np.testing.assert_array_equal(seen(training(own, settings, 1, step=1)), epochs[1][3:])


def test_segments_in_training():
    found = seen(training(source(Sampling(4, 1, True)), recipe(Sampling(4, 1, True)))) % 20 // 5
    np.testing.assert_array_equal(found, [[0, 1, 2, 3]] * 6)


def test_all_frames_of_a_clip_move_alike():
    """One crop, one flip, one shift: what was the same in two frames still is."""
    random = np.random.default_rng(0).integers(0, 256, (6, 1, 8, 8, 1))
    still = np.repeat(random, 20, axis=1).astype("uint8")
    for augment in (
        dict(flip=True, crop="padded", crop_padding=2, rotation=20.0, erase=0.5, jitter=0.3),
        dict(crop="inception", crop_area=0.3, flip=True),
        dict(mixup=0.5, cutmix=0.5),
    ):
        found = np.concatenate([np.asarray(x) for x, _ in training(source(images=still), recipe(**augment))])
        assert np.abs(found - found[:, :1]).max() < 1e-3
        assert all(np.abs(one[0] - other[0]).max() > 1 for one in found for other in still)


def files_of(folder, lengths=(8, 3, 8, 5, 1, 9)):
    shapes = ((16, 24), (12, 12), (20, 16))
    paths = []
    for i, length in enumerate(lengths):
        clip = np.zeros((length, *shapes[i % 3], 3), "uint8") + (20 * i + np.arange(length))[:, None, None, None]
        paths.append(str(animated(folder / f"{i}.apng", clip.astype("uint8"))))
    return np.array(paths, object)


@pytest.mark.parametrize("held", [True, False])
def test_files_of_several_sizes_and_lengths(tmp_path, monkeypatch, held):
    monkeypatch.setattr(
        clip_source, "fits", lambda size: held and size == 3 * (16 * 24 * 13 + 12 * 12 * 4 + 20 * 16 * 17)
    )
    paths = files_of(tmp_path)
    own = source(images=paths, files=True)
    found = seen(pipeline.evaluation_batches(own, recipe(), (4, 8, 8, 1)))
    lengths = (8, 3, 8, 5, 1, 9)
    wanted = [20 * i + frame_indices(length, 4, 2) for i, length in enumerate(lengths)]
    assert np.abs(found - np.array(wanted)).max() <= 1  # gray of colors
    assert len(own._decoded) == 6 * held
    found = seen(training(own, recipe()))
    assert np.abs(np.sort(found[:, 0] // 20) - np.arange(6)).max() == 0
    assert own.sizes()[0] == (paths[0], (16, 24)) and own.channels == (4, 12)
    assert source().sizes() == [("clips", (8, 8))] and source().channels == (4,)


@pytest.mark.parametrize("held", [True, False])
def test_files_whose_last_frame_is_shown_for_long(tmp_path, monkeypatch, held):
    """The middle is that of the time, of files that are held in memory too; of them, only frames that are seen."""
    monkeypatch.setattr(clip_source, "fits", lambda size: held)
    still = np.repeat(np.arange(40)[:, None].clip(max=24), 8 * 8 * 3, 1).reshape(40, 8, 8, 3).astype("uint8")
    paths = np.array([str(animated(tmp_path / f"{i}.apng", still)) for i in range(6)], object)
    own = source(sampling=Sampling(4, 2, centered=True), images=paths, files=True)
    for _ in range(2):
        found = seen(pipeline.evaluation_batches(own, recipe(), (4, 8, 8, 1)))
        assert np.abs(found - [16, 18, 20, 22]).max() <= 1
    assert np.abs(seen(training(own, recipe())) - [16, 18, 20, 22]).max() <= 1
    assert {len(clip) for clip in own._decoded.values()} == ({4} if held else set())


def test_a_file_that_breaks_while_it_is_read_is_named(tmp_path):
    paths = files_of(tmp_path)
    own = source(images=paths, files=True)
    clip_source.inspect_all(paths)
    (tmp_path / "2.apng").write_bytes(b"nonsense")
    said = "2.apng' was readable when it was checked, and now is not: cannot be read"
    with pytest.raises(ValueError, match=said), inspection.named(own):
        list(pipeline.evaluation_batches(own, recipe(), (4, 8, 8, 1)))


def test_what_identifies_the_clips(tmp_path):
    paths = files_of(tmp_path)
    checked = clip_source.inspect_all(paths)
    assert not checked.faults and checked[0].size == (24, 16) and len({one.digest for one in checked}) == 6
    assert checked.records["frames"].tolist() == [8, 3, 8, 5, 1, 9]
    own = source(images=paths, files=True)
    assert own.fingerprint() != dataclasses.replace(own, images=paths[::-1]).fingerprint()
    assert source().fingerprint() != source(images=ARRAYS + 1).fingerprint()
    (tmp_path / "bad.gif").write_bytes(b"x")
    assert "cannot be read as a clip" in clip_source.inspect_all([str(tmp_path / "bad.gif")])[0].fault
    assert moving(2).shape == (2, 16, 24, 3)
