import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

from keras_vit.config import Data
from keras_vit.data import sources
from keras_vit.data.clip_source import Sampling
from keras_vit.data.readers import clip_folder
from keras_vit.utils.warned import LeftOut
from tests.clipfiles import animated, moving
from tests.spoken import clips

SAMPLING = Sampling(4)
CLIPS = np.zeros((6, 9, 8, 8, 3), "uint8")


@pytest.fixture
def folder(tmp_path):
    for i in range(8):
        path = tmp_path / "clips" / ("left", "right")[i % 2] / f"{i}.gif"
        path.parent.mkdir(parents=True, exist_ok=True)
        animated(path, moving(seed=i))
    return tmp_path / "clips"


def load(folder, split="all", **options):
    return sources.load(Data(source=f"folder:{folder}", **options), split, clips=SAMPLING)


def test_a_folder_of_class_folders(folder):
    found = load(folder)
    assert found.class_names == ("left", "right") and len(found) == 8 and found.files and found.sampling == SAMPLING
    assert sorted(found.labels) == [0] * 4 + [1] * 4 and found.digests.shape == (8, 16)
    assert all(("left", "right")[label] in path for path, label in zip(found.images, found.labels))
    parts = [load(folder, split) for split in ("all[:50%]", "all[50%:]")]
    assert {*parts[0].images} | {*parts[1].images} == {*found.images} and len(parts[0]) == 4
    assert len(load(folder, limit=3)) == 3
    (folder / "left" / "notes.txt").write_text("x")
    with pytest.warns(LeftOut, match="1 files that are no clips: .txt"):
        load(folder)


def test_bad_folders(folder, tmp_path):
    (folder / "left" / "bad.mp4.gif").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"1 of 9 clips cannot be read. .*bad_images=skip:\n.*bad.mp4.gif \(cannot be"):
        load(folder)
    with pytest.warns(LeftOut, match="1 of 9 clips, which cannot be read"):
        assert len(load(folder, bad_images="skip")) == 8
    (folder / "up").mkdir()
    with pytest.raises(ValueError, match="each with clips .*Received: 3 folders, 2 with clips"):
        load(folder)
    with pytest.raises(FileNotFoundError, match="There is no folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="has no folder 'train' for the split 'train'"):
        load(folder, "train")
    for source in ("digits",):
        with pytest.raises(ValueError, match="Clips are read from class folders, .*Received: data.source='"):
            sources.load(Data(source=source), "all", clips=SAMPLING)


def test_arrays():
    found = clip_folder.from_arrays((CLIPS, [0, 1, 2] * 2), SAMPLING, (8, 8, 12), ("a", "b", "c"))
    assert found.images.dtype == "uint8" and found.labels.tolist() == [0, 1, 2] * 2 and found.channels == (12,)
    for arrays, message in (
        (CLIPS, r"must be a pair \(clips, labels\). Received: ndarray"),
        ((CLIPS, [0], [0]), "Received: tuple of 3"),
        ((CLIPS[:, 0], [0] * 6), r"shape \(batch, frames, height, width, 3\). Received: shape=\(6, 8, 8, 3\)"),
        ((CLIPS[..., :1], [0] * 6), "width, 3"),
        ((CLIPS, [3] * 6), "labels"),
        ((CLIPS, [0] * 5), "labels"),
    ):
        with pytest.raises(ValueError, match=message):
            clip_folder.from_arrays(arrays, SAMPLING, (8, 8, 12), ("a", "b", "c"))


def test_files_to_predict_are_seen_as_in_evaluation(tmp_path):
    path = animated(tmp_path / "a.apng", moving(9, 8, 8))
    found = clip_folder.reader((4, 8, 8, 3), Data(), SAMPLING)(path)
    np.testing.assert_array_equal(found, moving(9, 8, 8)[2:6])
    assert clip_folder.reader((4, 4, 4, 1), Data(), SAMPLING)(path).shape == (4, 4, 4, 1)
    Image.fromarray(moving(1)[0]).save(tmp_path / "still.png")
    assert clip_folder.reader((4, 8, 8, 3), Data(), SAMPLING)(tmp_path / "still.png").shape == (4, 8, 8, 3)


def test_clips_with_texts(tmp_path):
    files = clips(tmp_path / "told", 8)

    def told(split="all", **options):
        data = Data(source=f"folder:{tmp_path / 'told'}", **options)
        return sources.load(data, split, ("texts",), clips=SAMPLING)

    found = told()
    assert len(found) == 8 and found.sampling == SAMPLING and found.digests.shape == (8, 16)
    texts = dict(zip(map(str, found.images), found.targets["texts"]))
    assert texts[str(files[0])] == ("a red clip",) and texts[str(files[5])] == ("a green clip",)
    parts = [told(split) for split in ("all[:50%]", "all[50%:]")]
    assert {*parts[0].images} | {*parts[1].images} == {*found.images} and len(parts[0]) == 4
    lines = [f"{i}.gif,text {i},{'test' if i > 5 else 'train'}" for i in range(8)]
    (tmp_path / "told" / "metadata.csv").write_text("\n".join(["file_name,caption,split", *lines]))
    assert [len(told(split, columns={"splits": "split"})) for split in ("train", "test")] == [6, 2]
    with pytest.raises(ValueError, match="may name the columns of clips, .* Received: 'labels'"):
        told(columns={"labels": "split"})
    (tmp_path / "told" / "still.jpg").write_bytes(b"x")
    (tmp_path / "told" / "metadata.csv").write_text("file_name,caption\n0.gif,a\nstill.jpg,b")
    with pytest.raises(ValueError, match="must name clips .*Received: 1 other files, such as '.*still.jpg'"):
        told()
    (tmp_path / "told" / "metadata.csv").unlink()
    with pytest.raises(ValueError, match="must have a table, .*with texts for each clip. Received: none"):
        told()


def test_arrays_of_clips_and_texts():
    found = clip_folder.from_arrays((CLIPS, ["a", "b"] * 3), SAMPLING, (8, 8, 12), targets=("texts",))
    assert found.targets["texts"][1] == ("b",) and len({*found.groups.tolist()}) == 1  # the same clip each time
    for arrays, received in (((CLIPS,), "tuple of 1"), (CLIPS, "ndarray")):
        with pytest.raises(ValueError, match=rf"must be a pair \(clips, texts\). Received: {received}"):
            clip_folder.from_arrays(arrays, SAMPLING, (8, 8, 12), targets=("texts",))
    with pytest.raises(ValueError, match="must be a list of strings, or of lists, for 6 images. Received: 2 of them"):
        clip_folder.from_arrays((CLIPS, ["a", "b"]), SAMPLING, (8, 8, 12), targets=("texts",))
