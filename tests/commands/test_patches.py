import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from tests.commands.helpers import run as command
from tests.commands.test_features import pictures as pictures
from tests.marks import slow


@slow
def test_pca_and_anomaly_draw(pictures, tmp_path, capsys):
    command("pca", str(pictures), "--model", "mnist", "--to", str(tmp_path / "new" / "pca.png"))
    assert keras.utils.load_img(tmp_path / "new" / "pca.png").width > 100
    maps, saved = tmp_path / "maps", tmp_path / "detector.keras"
    images = [str(pictures / "dark" / "0.png"), str(pictures / "light")]
    command("anomaly", str(pictures / "dark"), *images, "--model", "mnist", "--to", str(maps), "--save", str(saved))
    lines = capsys.readouterr().out.splitlines()
    assert [line.endswith("  abnormal") for line in lines[1:]] == [False] + [True] * 4
    assert len([*maps.iterdir()]) == 5 and keras_vit.AnomalyDetector.load(saved).threshold > 0


def test_maps_are_drawn_over_the_whole_image(pictures, tmp_path, monkeypatch):
    wide, drawn, real = np.full((20, 80, 3), 40, "uint8"), [], keras_vit.plots.plot_maps
    wide[:, :6] = (250, 0, 0)
    keras.utils.save_img(tmp_path / "wide.png", wide, scale=False)
    draw = lambda *given, **more: drawn.append(given) or real(*given, **more)  # noqa: E731
    monkeypatch.setattr(keras_vit.plots, "plot_maps", draw)
    words = ["anomaly", str(pictures / "dark"), str(tmp_path / "wide.png")]
    command(*words, "--model", "cifar10_mae", "--to", str(tmp_path / "maps"))
    [(pixels, heat)] = drawn
    np.testing.assert_array_equal(pixels, wide[None])
    assert heat[0].max(0).argmax() == 0  # the first column of patches


def test_pca_and_anomaly_in_tiles_see_pictures_at_full_size(tmp_path, monkeypatch, capsys):
    rng, drawn, real = np.random.default_rng(0), [], keras_vit.plots.plot_maps
    for folder, sides in (("good", [(70, 96)] * 3), ("new", [(70, 96), (40, 3100)])):
        (tmp_path / folder).mkdir()
        for i, side in enumerate(sides):
            np.save(tmp_path / folder / f"{i}.npy", np.clip(rng.normal(80, 8, (*side, 3)), 0, 255).astype("uint8"))
    bad = np.load(tmp_path / "new" / "1.npy")
    bad[16:24, 3000:3008] = (250, 0, 0)
    np.save(tmp_path / "new" / "1.npy", bad)
    draw = lambda *given, **more: drawn.append(given) or real(*given, **more)  # noqa: E731
    monkeypatch.setattr(keras_vit.plots, "plot_maps", draw)
    maps, words = tmp_path / "maps", [str(tmp_path / "new"), "--model", "cifar10_mae"]
    command("anomaly", str(tmp_path / "good"), *words, "--to", str(maps), "--overlap", "0.5")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2 and lines[1].endswith("  abnormal")
    assert sorted(file.name for file in maps.iterdir()) == ["0000_0.png", "0001_1.png"]
    pixels, heat = drawn[1]
    assert pixels.shape == (1, 14, 1034, 3) and heat[0].max(0).argmax() * 3100 // heat.shape[2] in range(2990, 3010)
    command("pca", *words, "--tiles", "--to", str(tmp_path / "colors"), "--whole")
    assert sorted(file.name for file in (tmp_path / "colors").iterdir()) == ["0000_0.png", "0001_1.png"]
