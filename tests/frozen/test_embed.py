import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from unittest import mock

import filelock
import keras
import numpy as np
import pytest

import keras_vit
from keras_vit.frozen import embed
from keras_vit.utils.warned import LeftOut
from tests.marks import slow, slow_on_jax

pytestmark = [pytest.mark.backend, pytest.mark.filterwarnings("ignore::keras_vit.utils.warned.LeftOut")]


def test_vectors_are_the_model_s_own(folder, model, index):
    assert len(index.paths) == 11 and index.vectors.dtype == "float32"
    for i in (0, 10):
        pixels = keras_vit.preprocess(model, index.file(i))
        np.testing.assert_allclose(index.vectors[i], np.asarray(model(pixels))[0], atol=1e-5)
    assert sorted(index.paths)[:2] == [os.path.join("dark", "0.png"), os.path.join("dark", "1.png")]
    assert os.path.join("dark", "deep", "5.png") in index.paths
    assert index.left_out.shape == (1, 2) and index.left_out[0, 0] == os.path.join("light", "0.png")
    assert "is not a PNG" in index.left_out[0, 1]


def test_the_file_opens_in_numpy_without_the_package(folder, model, tmp_path, capsys):
    with pytest.warns(LeftOut, match="Left out 1 of 12 images, which cannot be read:\n.*0.png' is not a PNG"):
        out = keras_vit.embed_folder(folder, model, tmp_path / "new" / "all.npz", batch_size=4)
    assert not capsys.readouterr().out
    arrays = np.load(out)
    assert arrays["vectors"].shape == (11, model.output_shape[1]) and arrays["paths"].shape == (11,)
    assert json.loads(str(arrays["about"]))["folder"] == str(folder)
    assert [*out.parent.iterdir()] == [out]


@slow_on_jax
def test_a_head_is_left_out_and_a_name_is_kept(folder, tmp_path):
    model = keras_vit.from_pretrained("mnist")
    named = keras_vit.load_index(keras_vit.embed_folder(folder, "mnist", tmp_path / "named.npz"))
    given = keras_vit.load_index(keras_vit.embed_folder(folder, model, tmp_path / "given.npz"))
    np.testing.assert_allclose(named.vectors, given.vectors, atol=1e-5)
    assert named.about["model"] == "mnist" and given.about["model"] == ""
    assert named.about["fingerprint"] == given.about["fingerprint"]


def test_patch_tokens(folder, model, tmp_path):
    tokens = keras_vit.load_index(keras_vit.embed_folder(folder, model, tmp_path / "tokens.npz", tokens=True))
    assert tokens.vectors.shape[:3] == (11, 3, 2)
    pooled = keras_vit.embed_folder(folder, model, tmp_path / "pooled.npz")
    np.testing.assert_allclose(tokens.vectors.mean((1, 2)), keras_vit.load_index(pooled).vectors, atol=1e-5)


def test_shares_join_to_the_whole(folder, model, index, tmp_path):
    files = [keras_vit.embed_folder(folder, model, tmp_path / f"{i}.npz", share=(i, 3)) for i in range(3)]
    joined = keras_vit.load_index(*files)
    order = np.argsort(joined.paths)
    np.testing.assert_array_equal(joined.paths[order], np.sort(index.paths))
    np.testing.assert_allclose(joined.vectors[order], index.vectors[np.argsort(index.paths)], atol=1e-5)


@pytest.fixture
def failing(monkeypatch):
    """A function that lets the third batch of two images fail; each batch before it is saved."""

    def fails(**how):
        monkeypatch.setattr(embed, "SECONDS", 0.0)
        real, done = embed._save, []

        def save(*given):
            if len(done) == 2:
                raise OSError("the disk is full")
            real(*given)
            done.append(given)

        with monkeypatch.context() as patch:
            patch.setattr(embed, "_save", save)
            with pytest.raises(OSError, match="the disk is full"):
                keras_vit.embed_folder(batch_size=2, **how)

    return fails


def test_it_goes_on_after_a_failure_and_equals_an_undisturbed_one(folder, model, index, tmp_path, monkeypatch, failing):
    out, computed, read = tmp_path / "all.npz", [], embed.Embedder.read
    failing(folder=folder, model=model, out=out)
    assert not out.exists()
    monkeypatch.setattr(embed.Embedder, "read", lambda self, image: computed.append(image) or read(self, image))
    found = keras_vit.load_index(keras_vit.embed_folder(folder, model, out))
    assert len(computed) == 12 - 4
    for got, wanted in zip(found, index):
        assert np.array_equal(got, wanted) or np.allclose(got, wanted, atol=1e-5)


def test_a_full_disk_names_the_file_that_grows(folder, model, tmp_path, monkeypatch):
    monkeypatch.setattr(embed.os, "fsync", mock.Mock(side_effect=OSError(28, "No space left")))
    with pytest.raises(OSError, match=r"all\.npz\.partial/vectors' could not be written: No space left$"):
        keras_vit.embed_folder(folder, model, tmp_path / "all.npz")


def test_other_unfinished_work_is_not_mixed_in(folder, model, tmp_path, failing):
    out = tmp_path / "all.npz"
    failing(folder=folder, model=model, out=out)
    keras.utils.set_random_seed(1)
    other = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=0, depth=2, pooling="gap")
    with pytest.raises(ValueError, match="is unfinished work that differs in fingerprint. Pass overwrite=True"):
        keras_vit.embed_folder(folder, other, out)
    with pytest.raises(ValueError, match="is unfinished work that differs in share, images"):
        keras_vit.embed_folder(folder, model, out, share=(0, 2))
    assert keras_vit.embed_folder(folder, other, out, overwrite=True) == out


@slow_on_jax
@pytest.mark.parametrize("how", ["cut", "gone", "{", "[]", "longer"])
def test_damaged_unfinished_work_is_done_anew(how, folder, model, index, tmp_path, failing):
    out = tmp_path / "all.npz"
    failing(folder=folder, model=model, out=out)
    vectors = pathlib.Path(f"{out}.partial", embed.VECTORS)
    whole = vectors.read_bytes()
    vectors.write_bytes({"cut": whole[:100], "longer": whole + b"12"}.get(how, whole))
    if how == "gone":
        vectors.unlink()
    if how in ("{", "[]"):
        vectors.with_name(embed.PROGRESS).write_text(how)
    found = keras_vit.load_index(keras_vit.embed_folder(folder, model, out))
    np.testing.assert_array_equal(found.paths, index.paths)
    np.testing.assert_allclose(found.vectors, index.vectors, atol=1e-5)


def test_bad_input_is_one_sentence_before_any_work(folder, model, tmp_path):
    out = tmp_path / "all.npz"
    with pytest.raises(FileNotFoundError, match="There is no folder '.*nowhere'"):
        keras_vit.embed_folder(tmp_path / "nowhere", model, out)
    with pytest.raises(ValueError, match="There is no image in the folder"):
        keras_vit.embed_folder(tmp_path, model, out)
    with pytest.raises(ValueError, match="`out` must end in .npz. Received: '.*all.csv'"):
        keras_vit.embed_folder(folder, model, tmp_path / "all.csv")
    for share in ((1, 1), (0, 0), (-1, 2), 3, (0.0, 2)):
        with pytest.raises(ValueError, match=r"`share` must be \(i, n\) with 0 <= i < n"):
            keras_vit.embed_folder(folder, model, out, share=share)
    with pytest.raises(ValueError, match="`batch_size` must be a positive integer. Received: batch_size=0"):
        keras_vit.embed_folder(folder, model, out, batch_size=0)
    with pytest.raises(ValueError, match="'no-such-model'"):
        keras_vit.embed_folder(folder, "no-such-model", out)
    out.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match="all.npz' is not a whole file.*Pass overwrite=True"):
        keras_vit.embed_folder(folder, model, out)
    assert [*tmp_path.iterdir()] == [out] and out.read_bytes() == b"mine"


def test_an_image_that_nothing_can_be_read_of(model, tmp_path):
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.png").write_bytes(b"no image")
    with pytest.raises(ValueError, match="No image could be read. The first of 1: '.*a.png' is not a PNG"):
        keras_vit.embed_folder(tmp_path / "bad", model, tmp_path / "all.npz")


def test_features_that_are_not_finite_name_the_image(folder, tmp_path):
    model = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=0)
    model.get_layer("norm").gamma.assign(np.nan * np.ones(model.output_shape[1]))
    with pytest.raises(ValueError, match="must return finite features. Received: NaN or infinity for '.*0.png'"):
        keras_vit.embed_folder(folder, model, tmp_path / "all.npz")


def test_two_processes_do_not_write_one_file(folder, model, tmp_path):
    partial = tmp_path / "all.npz.partial"
    partial.mkdir()
    said = "Another process is writing '.*all.npz'. Wait for it"
    with filelock.FileLock(partial / embed.LOCK), pytest.raises(ValueError, match=said):
        keras_vit.embed_folder(folder, model, tmp_path / "all.npz")


SCRIPT = """
import sys, keras_vit
from keras_vit.frozen import embed
embed.SECONDS = 0.0
keras_vit.embed_folder(sys.argv[1], "mnist", sys.argv[2], batch_size=2)
"""


@slow
def test_a_killed_process_goes_on(folder, tmp_path):
    out = tmp_path / "killed.npz"
    command = [sys.executable, "-c", SCRIPT, str(folder), str(out)]
    process, partial = subprocess.Popen(command), pathlib.Path(f"{out}.partial")
    while process.poll() is None and not (partial / "progress.json").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    subprocess.run(command, check=True)
    whole = keras_vit.load_index(keras_vit.embed_folder(folder, "mnist", tmp_path / "whole.npz"))
    found = keras_vit.load_index(out)
    np.testing.assert_array_equal(found.paths, whole.paths)
    np.testing.assert_allclose(found.vectors, whole.vectors, atol=1e-5)


def test_a_share_without_images_and_a_folder_as_file(folder, model, tmp_path):
    with pytest.raises(ValueError, match=r"Each share needs an image. Received: share=\(12, 13\)"):
        keras_vit.embed_folder(folder, model, tmp_path / "a.npz", share=(12, 13))
    (tmp_path / "b.npz").mkdir()
    with pytest.raises(ValueError, match="`out` must be a file. Received: the folder '.*b.npz'"):
        keras_vit.embed_folder(folder, model, tmp_path / "b.npz", overwrite=True)
    with pytest.raises(ValueError, match="`overwrite` must be True or False"):
        keras_vit.embed_folder(folder, model, tmp_path / "a.npz", overwrite="False")


def test_overwriting_goes_on_too(folder, model, tmp_path, monkeypatch):
    out = keras_vit.embed_folder(folder, model, tmp_path / "all.npz")
    with monkeypatch.context() as patch:
        patch.setattr(embed, "write", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            keras_vit.embed_folder(folder, model, out, overwrite=True)
    monkeypatch.setattr(embed.Embedder, "read", lambda *given: 1 / 0)  # nothing is left to compute
    keras_vit.embed_folder(folder, model, out, overwrite=True)


def test_links_are_followed(folder, model, tmp_path):
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "dark").symlink_to(folder / "dark", target_is_directory=True)
    (tmp_path / "linked" / "back").symlink_to(tmp_path / "linked", target_is_directory=True)
    (tmp_path / "linked" / "gone.png").symlink_to(tmp_path / "nowhere.png")
    found = keras_vit.load_index(keras_vit.embed_folder(tmp_path / "linked", model, tmp_path / "all.npz"))
    assert len(found.paths) == 6 and found.left_out[0, 0] == "gone.png"


def copied(folder, tmp_path):
    return pathlib.Path(shutil.copytree(folder, tmp_path / "photos"))


def test_a_file_grows_by_what_is_new_and_equals_one_computed_anew(folder, model, tmp_path, monkeypatch):
    """The images are seen at four places: first, last, between kept ones, and in place of another."""
    photos, out, computed = copied(folder, tmp_path), tmp_path / "all.npz", []
    for name in ("light/1.png", "dark/0.png"):
        (photos / name).rename(tmp_path / pathlib.Path(name).name)
    _, changes = embed.embed(photos, model, out)
    assert changes == {"kept": 0, "changed": 0, "new": 9, "dropped": 0}
    read = embed.Embedder.read
    monkeypatch.setattr(embed.Embedder, "read", lambda self, image: computed.append(image.name) or read(self, image))
    shutil.copy(tmp_path / "1.png", photos / "light" / "9.png")  # new, at the end
    shutil.move(tmp_path / "0.png", photos / "dark" / "0.png")  # new, at the beginning
    shutil.copy(photos / "light" / "2.png", photos / "dark" / "2.png")  # changed
    (photos / "dark" / "3.png").unlink()
    _, changes = embed.embed(photos, model, out)
    assert changes == {"kept": 7, "changed": 1, "new": 2, "dropped": 1}
    assert sorted(computed) == ["0.png", "0.png", "2.png", "9.png"]  # one of them cannot be read
    grown, anew = keras_vit.load_index(out), keras_vit.embed_folder(photos, model, tmp_path / "anew.npz")
    anew = keras_vit.load_index(anew)
    np.testing.assert_array_equal(grown.paths, anew.paths)
    np.testing.assert_allclose(grown.vectors, anew.vectors, atol=1e-5)
    np.testing.assert_array_equal(grown.left_out, anew.left_out)
    assert grown.about["changes"] == changes and not [*tmp_path.glob("*.partial")]


def test_what_is_up_to_date_is_not_written_again(folder, model, tmp_path):
    photos, out = copied(folder, tmp_path), tmp_path / "all.npz"
    keras_vit.embed_folder(photos, model, out)
    before = out.stat().st_mtime_ns
    assert embed.embed(photos, model, out)[1] == {"kept": 11, "changed": 0, "new": 0, "dropped": 0}
    assert out.stat().st_mtime_ns == before
    shutil.copy(photos / "light" / "1.png", photos / "light" / "0.png")  # was not readable
    keras_vit.embed_folder(photos, model, out)
    assert len(keras_vit.load_index(out).paths) == 12 and not len(keras_vit.load_index(out).left_out)


def test_a_file_of_something_else_does_not_grow(folder, model, tmp_path):
    out = keras_vit.embed_folder(folder, model, tmp_path / "all.npz")
    whole = out.read_bytes()
    keras.utils.set_random_seed(1)
    other = keras_vit.vit("mu/4", image_size=(12, 8), num_classes=0, depth=2, pooling="gap")
    for call, differ in (
        (lambda: keras_vit.embed_folder(folder, other, out), "fingerprint"),
        (lambda: keras_vit.embed_folder(folder, model, out, tokens=True), "fingerprint"),
        (lambda: keras_vit.embed_folder(folder, model, out, share=(0, 2)), "share"),
        (lambda: keras_vit.embed_folder(folder / "dark", model, out), "folder"),
    ):
        with pytest.raises(FileExistsError, match=f"exists, and differs in {differ}. Choose another file, or pass"):
            call()
    out.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FileExistsError, match="is not a whole file from `embed_folder`.*Pass overwrite=True"):
        keras_vit.embed_folder(folder, model, out)
    assert not [*tmp_path.glob("*.partial")]


def test_a_flipped_bit_of_what_is_kept_is_found(folder, model, tmp_path):
    photos, out = copied(folder, tmp_path), tmp_path / "all.npz"
    keras_vit.embed_folder(photos, model, out)
    damaged = bytearray(out.read_bytes())
    damaged[300] ^= 1  # of the vectors
    out.write_bytes(damaged)
    (photos / "dark" / "0.png").unlink()
    with pytest.raises((ValueError, FileExistsError), match="is not a whole file from `embed_folder`: Bad CRC-32"):
        keras_vit.embed_folder(photos, model, out)
