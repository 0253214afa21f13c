import shutil
import subprocess
import sys

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.utils.warned import LeftOut
from tests.commands.helpers import run as command
from tests.marks import slow


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Two class folders of four images."""
    folder, rng = tmp_path_factory.mktemp("pictures"), np.random.default_rng(0)
    for name, level in {"dark": 40, "light": 200}.items():
        (folder / name).mkdir()
        for i in range(4):
            pixels = np.clip(rng.normal(level, 5, (28, 28, 3)), 0, 255)
            keras.utils.save_img(folder / name / f"{i}.png", pixels, scale=False)
    return folder


@pytest.fixture(scope="module")
def index(pictures, tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "all.npz"
    command("embed", str(pictures), "--model", "mnist", "--to", str(path))
    return path


def test_embed_writes_an_index_and_its_shares(pictures, index, tmp_path, capsys):
    files = [tmp_path / f"{i}.npz" for i in range(2)]
    for i, file in enumerate(files):
        command("embed", str(pictures), "--model", "mnist", "--to", str(file), "--share", f"{i}/2")
    assert capsys.readouterr().out.splitlines() == [f"{file}: 4 images" for file in files]
    assert sorted(keras_vit.load_index(*files).paths) == sorted(keras_vit.load_index(index).paths)


def test_nearest_and_knn_name_their_model_themselves(pictures, index, capsys):
    command("nearest", str(index), str(pictures / "dark" / "0.png"), "--k", "2")
    first, second, _ = capsys.readouterr().out.splitlines()
    assert first == f"{pictures / 'dark' / '0.png'}:" and second == f"  1.000  {pictures / 'dark' / '0.png'}"
    command("knn", str(index), str(pictures / "light"), "--k", "3", "--top", "1")
    assert [line.split(": ")[1][:5] for line in capsys.readouterr().out.splitlines()] == ["light"] * 4


def test_probe_writes_a_classifier(pictures, index, tmp_path, capsys):
    command("probe", str(index), "--to", str(tmp_path / "probe.keras"))
    assert "2 classes, top-1 100.00%" in capsys.readouterr().out
    command("predict", str(tmp_path / "probe.keras"), str(pictures / "dark"), "--top", "1")
    assert [line.split(": ")[1][:4] for line in capsys.readouterr().out.splitlines()] == ["dark"] * 4


@slow
def test_one_bad_file_does_not_end_the_others(pictures, index, tmp_path, capsys):
    """Each command answers for the others, names the bad one, and ends with status 1."""
    for name in ("a", "c"):
        shutil.copy(pictures / "dark" / "0.png", tmp_path / f"{name}.png")
    (tmp_path / "b.png").write_bytes(b"no image")
    good = shutil.copytree(pictures / "dark", tmp_path.with_name("good"))
    (good / "bad.png").write_bytes(b"no image")
    maps = tmp_path.with_name("maps")
    for words, count in (
        (["nearest", str(index), str(tmp_path), "--k", "1"], 1),
        (["knn", str(index), str(tmp_path)], 1),
        (["pca", str(tmp_path), "--model", "mnist", "--to", str(tmp_path.with_name("pca.jpg"))], 1),
        (["anomaly", str(good), str(tmp_path), "--model", "mnist", "--to", str(maps)], 2),
    ):
        with pytest.warns(LeftOut, match="Left out 1 of [35] images, which cannot be read:\n.*(b|bad).png") as caught:
            command(*words, status=1)
        out, err = capsys.readouterr()
        assert sum(warning.category is LeftOut for warning in caught) == count
        assert err.endswith("error: 1 of 3 images cannot be read.\n")
        assert words[0] == "pca" or ["a.png:" in out, "b.png:" in out, "c.png:" in out] == [True, False, True]
    assert sorted(file.name for file in maps.iterdir()) == ["0000_a.png", "0002_c.png"]
    command("nearest", str(index), str(tmp_path / "b.png"), status=2)
    assert "b.png' is not a PNG" in capsys.readouterr().err


def test_embed_says_what_is_new(pictures, tmp_path, capsys):
    folder, out = shutil.copytree(pictures, tmp_path / "photos"), tmp_path / "all.npz"
    words = ["embed", str(folder), "--model", "mnist", "--to", str(out)]
    command(*words)
    shutil.copy(folder / "dark" / "0.png", folder / "dark" / "9.png")
    (folder / "light" / "0.png").unlink()
    command(*words)
    command(*words[:3], "cifar10_mae", *words[4:], status=2)
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{out}: 8 images" and second == f"{out}: 8 images (7 kept, 0 changed, 1 new, 1 dropped)"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["embed", "FOLDER"], "--model is missing"),
        (["embed", "FOLDER", "--model", "mnist", "--tiles"], "embed does not see pictures in tiles"),
        (["embed", "FOLDER", "--model", "mnist", "--to", "x.npz", "--share", "1"], "`share` must be (i, n)"),
        (["embed", "FOLDER", "--model", "mnist", "--to", "x.npz", "--share", "a/b"], "`share` must be (i, n)"),
        (["nearest", "INDEX"], "At least one image file is needed"),
        (["nearest", "INDEX", "FOLDER", "--k", "9"], "at most the 8 images"),
        (["knn", "INDEX", "FOLDER", "--model", "nuclei"], "`model` must be the index's"),
        (["probe", "INDEX", "--to", "x.npz"], "--to must end in .keras"),
        (["pca", "FOLDER"], "--model is missing"),
        (["pca", "FOLDER", "--model", "mnist", "--to", "FOLDER"], "`to` must be a file. Received: the folder"),
        (["anomaly", "FOLDER", "FOLDER", "--model", "mnist", "--save", "a.h5"], "--save must end in .keras"),
        (["pca", "FOLDER", "--model", "mnist", "--tiles", "--to", "FOLDER/dark/0.png"], "`to` must be a folder."),
        (["anomaly", "FOLDER", "FOLDER", "--model", "mnist", "--tile-size", "29"], "a multiple of"),
        (["anomaly", "nowhere", "FOLDER", "--model", "mnist"], "There is no image in the folder 'nowhere'"),
    ],
)
def test_bad_words_are_one_sentence(words, said, pictures, index, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    places = {"FOLDER": str(pictures), "INDEX": str(index), "FOLDER/dark/0.png": str(pictures / "dark" / "0.png")}
    command(*[places.get(word, word) for word in words], status=2)
    err = capsys.readouterr().err
    assert err.startswith("error: ") and said in err and err.count("\n") == 1
    assert not [*tmp_path.iterdir()]


@slow
@pytest.mark.parametrize(
    "words",
    [
        ["embed", "FOLDER", "--model", "mnist", "--to", "x.npz"],
        ["nearest", "INDEX", "FOLDER", "--k", "1"],
        ["knn", "INDEX", "FOLDER"],
        ["probe", "INDEX"],
        ["pca", "FOLDER", "--model", "mnist"],
        ["anomaly", "FOLDER", "FOLDER", "--model", "mnist", "--to", "maps"],
    ],
    ids=lambda words: words[0],
)
def test_each_works_in_a_process_of_its_own(words, pictures, index, tmp_path):
    """What a command imports first must not need what is being imported."""
    given = [{"FOLDER": str(pictures), "INDEX": str(index)}.get(word, word) for word in words]
    subprocess.run([sys.executable, "-m", "keras_vit", *given], check=True, cwd=tmp_path)
