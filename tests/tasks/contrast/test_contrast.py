import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.config import Contrast, Data, Optim, Recipe
from keras_vit.data.memory import Source
from keras_vit.data.readers.texts import together
from keras_vit.runs import results
from keras_vit.tasks.contrast import contrast
from keras_vit.training import devices
from tests.marks import QUICKLY, few, fuller, slow
from tests.tasks.harness import run_task_test
from tests.towers import two_towers

MODEL = dict(variant="mu/4", image_size=8, depth=1)
TEXT = dict(width=16, depth=1, num_heads=2)
COLORS = {"red": (220, 20, 20), "green": (20, 200, 20), "blue": (20, 20, 220), "white": (240, 240, 240)}


@pytest.fixture
def pairs(tmp_path):
    """A folder of pictures of one color each, with its name among their texts."""
    lines = ["file_name,caption,other"]
    (tmp_path / "pairs").mkdir()
    for i in range(32):
        name, color = [*COLORS.items()][i % 4]
        noise = np.random.default_rng(i).integers(-20, 20, (8, 8, 3))
        Image.fromarray(np.uint8(np.clip(np.array(color) + noise, 0, 255))).save(tmp_path / "pairs" / f"{i}.png")
        lines.append(f"{i}.png,a {name} picture,{name if i % 3 else ''}")
    (tmp_path / "pairs" / "metadata.csv").write_text("\n".join(lines))
    return tmp_path / "pairs"


def recipe(folder, epochs=2, **settings):
    return Recipe(
        name="pairs",
        task=Contrast(width=16, length=6, text=TEXT, **settings),
        model={**MODEL, "num_classes": 16},
        data=Data(
            source=f"folder:{folder}", train="all[:50%]", validation="all[50%:75%]", test="all[75%:]", batch_size=8,
            columns={"texts": ["caption", "other"]},
        ),
        optim=Optim(epochs=epochs, warmup_epochs=0.0, learning_rate=3e-3, weight_decay=0.0),
    )  # fmt: skip


@fuller
@few(1)
@pytest.mark.parametrize("loss", ["softmax", "sigmoid"])
def test_contrast(tmp_path, monkeypatch, pairs, loss):
    trained = run_task_test(
        recipe(pairs, loss=loss), tmp_path, monkeypatch, [pairs / "0.png"], texts="a red picture",
        **({} if loss == "softmax" else {"whole": False}),
    )  # fmt: skip
    model, run = trained.model, trained.run
    assert model.output_shape == (None, 2, 16 + (loss == "sigmoid")) and trained.task.gives == "pairs"
    assert keras_vit.zero_shot(model, [pairs / "0.png"], ["red", "blue"]).kind == loss
    images = np.zeros((2, 8, 8, 3), "float32")
    ids = trained.ids_of(["red", "a blue picture"], 2)["texts"]
    pair = np.asarray(model({"images": images, "texts": ids}))
    image, text = (np.asarray(model.get_layer(name)(x)) for name, x in (("image", images), ("text", ids)))
    cosines = (image * text).sum(-1) / np.linalg.norm(image, axis=-1) / np.linalg.norm(text, axis=-1)
    np.testing.assert_allclose([trained.task.answer(each)["similarity"] for each in pair], cosines, atol=1e-5)
    with pytest.raises(ValueError, match="Calibration is for models of images alone.*Received: quantize='int8'"):
        results.export(run, tmp_path / "new", quantize=["float16", "int8"])
    assert not (tmp_path / "new").exists()
    if loss == "sigmoid" and not QUICKLY:  # whose bias is one more channel
        results.export(run, quantize=["float16", "dynamic"], onnx=True, openvino=True)
        measured = [*keras_vit.evaluate(run).values()]
        assert len(measured) == 7
        for found in measured:
            np.testing.assert_allclose([*found.values()], [*measured[0].values()], atol=0.02)
    with pytest.raises(ValueError, match="Contrast takes a text with each image: pass `texts`. Received: texts=None"):
        keras_vit.predict(run, [pairs / "0.png"])
    with pytest.raises(ValueError, match="must be a text for all images, or one for each of 1. Received: 2"):
        keras_vit.predict(run, [pairs / "0.png"], texts=["a", "b"])


@slow
@pytest.mark.compiled
def test_pictures_find_their_texts(tmp_path, monkeypatch, pairs):
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))  # compiling takes longer than training
    model, history = keras_vit.fit(recipe(pairs, epochs=12), tmp_path / "run", verbose=0)
    assert history["val_text_to_image_recall_at_1"][-1] == history["val_image_to_text_recall_at_1"][-1] == 1
    found = keras_vit.zero_shot(model, sorted(pairs.glob("*.png"))[:8], [*COLORS])
    names = [[*COLORS][int(path.stem) % 4] for path in sorted(pairs.glob("*.png"))[:8]]
    assert [found.classes[i] for i in found.probabilities.argmax(1)] == names


def test_texts_that_are_all_the_same_teach_nothing():
    source = Source(np.zeros((3, 8, 8, 3), "uint8"), {"texts": together([("a cat", "cat")] * 3)})
    task = Contrast(length=4).on(source)
    with pytest.raises(ValueError, match="have two different ones, .* Received: 3 images with the same text"):
        task.read(source, training=True)
    assert len(task.read(source).targets["texts"]) == 3


@slow
def test_towers_to_start_from(tmp_path):
    model = two_towers(words=["<pad>", "<end>", *"abcdefghi", "<unknown>"])
    model.save(tmp_path / "towers.keras")
    images, ids = np.full((2, 12, 8, 3), 99.0, "float32"), np.array([[3, 4, 1, 0, 0, 0, 0, 0]] * 2)
    task = Contrast(start=str(tmp_path / "towers.keras"), length=8)
    source = Source(images, {"texts": together([("zebra",), ("quiet",)])})
    assert task.on(source).words == ("<pad>", "<end>", *"abcdefghi", "<unknown>")  # not learned anew
    started = task.model(name="x")
    logits, pair = np.asarray(model({"images": images, "texts": ids})), started({"images": images, "texts": ids})
    np.testing.assert_allclose(np.asarray(pair[:, 0] @ pair[:, 1].numpy().T), logits, atol=1e-4)
    with pytest.raises(ValueError, match="as many ids as the tower of task.start, 8. Received: task.length=9"):
        Contrast(start=task.start, length=9).model()
    with pytest.raises(ValueError, match="were trained with loss='softmax'. Received: loss='sigmoid'"):
        Contrast(start=task.start, length=8, loss="sigmoid").model()
    with pytest.raises(ValueError, match="Words must be those of the model to start from, 12: .* Received: 1 others"):
        Contrast(start=task.start, length=8, words=("<pad>",)).model()
    with pytest.raises(ValueError, match=r"tower of task.start takes them, \(12, 8\). Received: model.image_size=16"):
        task.model(image_size=16)
    with pytest.raises(ValueError, match="needs the tokenizer .* Received: none with 'hf://x/y'"):
        Contrast(start="hf://x/y").on(source)


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        (dict(text={"length": 3}), {}, "The task sets the text tower's length. Received: task.text={'length': 3}"),
        (dict(classes=("a",)), {}, "Contrast has no classes. Received: task.classes="),
        (dict(start="x"), {}, "Towers of task.start have their own sizes.* Received: {'depth': 1"),
        ({}, {"model": {**MODEL, "num_classes": 3}}, "set task.width. Received: task.width=256, model.num_classes=3"),
        ({}, {"optim": Optim(accumulate=2)}, "by both towers: leave it out. Received: optim.accumulate=2"),
        ({}, {"data": Data(batch_size=1)}, "data.batch_size must be 2 or more, and better 100. Received: 1"),
        ({}, {"optim": Optim(lora=2)}, "leave it out. Received: optim.lora=2"),
    ],
)
def test_options_that_do_not_fit(task, changes, message):
    task = Contrast(**task)
    with pytest.raises(ValueError, match=message):
        task.check(Recipe(**{"name": "a", "task": task, "model": MODEL, **changes}))


def test_a_cosine_of_two_rows():
    assert contrast.cosine([[3, 0], [0, 2]]) == 0 and contrast.cosine([[3, 0], [2, 0]]) == 1
