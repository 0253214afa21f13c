import json
import re

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import plots
from keras_vit.config import Caption, Data, Optim, Recipe
from keras_vit.runs import looking


def test_a_classifier(run, tmp_path, monkeypatch):
    drawn, real = [], plots.plot_attention
    monkeypatch.setattr(plots, "plot_attention", lambda *given: drawn.append(given[2:]) or real(*given))
    pictures = looking.explain(run, folder=tmp_path)
    [(titles, method)] = drawn
    assert method == "relevance" and all(re.fullmatch(r"\d(, predicted \d)? \(\d+%\)", title) for title in titles)
    assert [p.name for p in pictures] == ["attention.png", "curves.png"]
    assert all(p.stat().st_size > 5000 for p in pictures)


def test_a_run_on_arrays_has_no_pictures_of_its_own(run):
    data = json.loads((run / "data.json").read_text())
    (run / "data.json").write_text(json.dumps({**data, "arrays": True}))
    with pytest.raises(ValueError, match="Pass image files"):
        looking.explain(run)


def test_each_letter_that_was_written_has_a_picture(tmp_path, monkeypatch):
    """Of texts of letters, the blank is one of them, and what comes after the end is not drawn."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "lines"
    folder.mkdir()
    rows = ["file_name,text"]
    for i in range(12):
        Image.fromarray(np.full((8, 8, 3), i % 2 * 200, "uint8")).save(folder / f"{i}.png")
        rows.append(f"{i}.png,{'A b' if i % 2 else 'b'}")
    (folder / "metadata.csv").write_text("\n".join(rows))
    recipe = Recipe(
        name="letters",
        task=Caption(length=6, letters=True, text=dict(width=16, depth=1, num_heads=2)),
        model=dict(variant="mu/4", image_size=8, depth=1, num_classes=0, pooling="none"),
        data=Data(source="folder:lines", train="all[:50%]", validation="all[50%:75%]", test="all[75%:]", batch_size=6),
        optim=Optim(epochs=60, warmup_epochs=0.0, learning_rate=1e-2, weight_decay=0.0, xla=False),
    )
    keras_vit.fit(recipe, "runs/letters", verbose=0)
    trained = keras_vit.load_run("runs/letters")
    assert trained.task.words == ("<pad>", "<end>", "<unknown>", " ", "A", "b")
    files = [folder / "1.png", folder / "0.png"]
    assert [name for ((name, _),) in keras_vit.predict(trained, files)] == ["A b", "b"]
    drawn, real = [], plots.plot_words
    monkeypatch.setattr(plots, "plot_words", lambda *given: drawn.append(given) or real(*given))
    assert [path.name for path in looking.explain(trained, files)] == ["attention.png", "curves.png"]
    [(_, maps, words, _)] = drawn
    assert words == [["A", " ", "b"], ["b"]] and maps.shape[:2] == (2, 5) and maps.shape[2:] == (2, 2)
