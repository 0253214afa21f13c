import dataclasses
import json
import types

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import config
from keras_vit.checkpoints import own_models
from keras_vit.config import Augment, Data, Optim, Recipe, Segment
from keras_vit.data import pipeline
from keras_vit.data.memory import Source
from keras_vit.data.readers.texts import together
from keras_vit.runs import looking, results
from keras_vit.training import devices
from keras_vit.training.fit import on_data
from tests import clipsegs, sentences
from tests.marks import QUICKLY, fuller, slow
from tests.tasks.harness import run_task_test
from tests.towers import LENGTH, WORDS

MODEL = dict(variant="mu/4", image_size=16, depth=2)
TASK = Segment(
    text=True,
    length=6,
    head={"kind": "film", "width": 16, "num_heads": 2, "mlp_dim": 32},
    tower=dict(width=16, depth=1, num_heads=2),
)
IMAGES = np.zeros((3, 16, 16, 3), "uint8")
MASKS = np.zeros((3, 16, 16, 1), "uint8")
MASKS[:, :4, :4] = 1


def recipe(folder, epochs=2, batch_size=8, **more):
    return Recipe(
        name="squares",
        task=dataclasses.replace(TASK, **more),
        model=MODEL,
        data=Data(
            source=f"folder:{folder}",
            train="all[:60%]",
            validation="all[60%:80%]",
            test="all[80%:]",
            batch_size=batch_size,
        ),
        optim=Optim(epochs=epochs, learning_rate=3e-3, weight_decay=0.0, warmup_epochs=0.0, xla=False),
    )


def source(texts=("a red car", "a cat", "two cats"), masks=MASKS):
    return Source(IMAGES, {"segmentation_masks": masks, "texts": together([(text,) for text in texts])})


@fuller
def test_described(tmp_path, monkeypatch):
    folder = sentences.written(tmp_path / "squares")
    image, text = folder / "images" / "0.png", "the red square"
    trained = run_task_test(recipe(folder), tmp_path, monkeypatch, [image], texts=text)
    model, run, task = trained.model, trained.run, trained.task
    assert model.output_shape == (None, 16, 16, 1) and task.gives == "label_masks" and task.classes == ()
    found = keras_vit.predict(run, [image, image], texts=[text, "the blue square"])
    assert [name for name, _ in found[0]] == ["area", "highest probability"] and found[0] != found[1]
    keras_vit.predict(run, [image], texts=text, to=tmp_path / "predicted")
    with Image.open(tmp_path / "predicted" / "0.png") as mask:
        assert mask.size == (16, 16) and set(np.unique(mask)) <= {0, 1}
    drawn = looking.explain(trained, [image], tmp_path / "drawn", texts=text)
    assert [path.name for path in drawn] == ["curves.png", "pictures.png"]
    with pytest.raises(ValueError, match="Segment takes a text with each image: pass `texts`. Received: texts=None"):
        keras_vit.predict(run, [image])
    if not QUICKLY:
        results.export(run, quantize=["float16", "dynamic"], onnx=True, openvino=True)
        measured = [*keras_vit.evaluate(run).values()]
        assert len(measured) == 7
        for found in measured:
            np.testing.assert_allclose([*found.values()], [*measured[0].values()], atol=0.02)


def test_its_file_segments_any_prompts(tmp_path):
    photos, prompts = [sentences.scene(i)[0] for i in (0, 1)], ["the red square", "blue"]
    words = ("<pad>", "<end>", "<unknown>", "the", "square", *sentences.COLORS)
    task = dataclasses.replace(TASK, words=words)
    model = task.model(**MODEL)
    task.callbacks(types.SimpleNamespace(model=model, recipe=Recipe(name="a", task=task, model=MODEL)))
    model.save(tmp_path / "run.keras")
    loaded = keras_vit.from_pretrained(tmp_path / "run.keras")
    assert loaded.output_shape == (None, 16, 16, None)
    found = keras_vit.segment_prompts(loaded, photos, prompts)
    ids = task.ids_of()(prompts)
    for i, photo in enumerate(photos):
        inputs = {"images": np.stack([photo] * 2).astype("float32"), "texts": ids}
        logits = np.asarray(model(inputs))[..., 0]  # of one image and each text
        np.testing.assert_allclose(found[i], np.moveaxis(1 / (1 + np.exp(-logits)), 0, -1), atol=1e-5)
    for one, other in zip(found, keras_vit.segment_prompts(model, photos, prompts)):
        np.testing.assert_allclose(one, other, atol=1e-5)
    alone = keras_vit.zero_shot_segmenter(model, prompts)
    assert keras_vit.class_names(alone) == tuple(prompts) and alone.output_shape == (None, 16, 16, 2)
    logits = np.asarray(alone(keras_vit.preprocess(alone, photos[:1])))
    np.testing.assert_allclose(1 / (1 + np.exp(-logits[0])), found[0], atol=1e-5)
    with pytest.raises(ValueError, match="was trained on sentences: .* Pass texts. Received: 1 examples"):
        keras_vit.segment_prompts(loaded, photos, [photos[0]])


@slow
def test_a_clipseg_is_trained_by_its_decoder_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (4, clipsegs.SIDE, clipsegs.SIDE, 3)).astype("uint8")
    masks = rng.integers(0, 2, (4, clipsegs.SIDE, clipsegs.SIDE)).astype("uint8")
    arrays = (images, masks, ["a red car", "a cat", "a dog", "a green cat"])
    clipsegs.shared().save(tmp_path / "clipseg.keras")
    published = Recipe(
        name="further",
        task=Segment(text=True, length=LENGTH, words=tuple(WORDS)),
        model={"weights": str(tmp_path / "clipseg.keras"), "image_size": clipsegs.SIDE},
        data=Data(batch_size=2),
        optim=Optim(epochs=1, warmup_epochs=0.0, freeze="all", xla=False),
    )
    with pytest.warns(UserWarning, match="4 of 4 validation examples are training examples too|of the 4 groups of the"):
        model, history = keras_vit.fit(published, tmp_path / "run", train=arrays, validation=arrays, verbose=0)
    assert np.isfinite(history["val_mean_iou"][0]) and np.isfinite(history["val_loss"][0])
    for name in ("image", "text"):
        pairs = zip(model.get_layer(name).get_weights(), clipsegs.shared().get_layer(name).get_weights(), strict=True)
        assert all(np.array_equal(*pair) for pair in pairs)
    before = clipsegs.shared().get_layer("decoder").get_weights()
    same = sum(map(np.array_equal, model.get_layer("decoder").get_weights(), before))
    assert same <= 2  # biases of keys change nothing
    whole = keras_vit.from_pretrained(tmp_path / "run")
    found = keras_vit.segment_prompts(whole, images[0], ["a cat", images[1]], WORDS)  # an example still means a text
    assert found[0].shape == (clipsegs.SIDE, clipsegs.SIDE, 2)
    lacking = dataclasses.replace(published, task=Segment(text=True, length=LENGTH))
    monkeypatch.setattr(own_models, "trained_in", lambda address: None)
    lacking = config.override(lacking, {"model.weights": "hf://CIDAS/clipseg-rd64-refined"})
    with pytest.raises(ValueError, match="needs the tokenizer .*task.tokens.* Received: none with 'hf://CIDAS"):
        keras_vit.fit(lacking, tmp_path / "none", train=arrays, validation=arrays, verbose=0)


@slow
@pytest.mark.compiled
def test_another_sentence_finds_other_pixels(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "ALONE", devices.Place(jit_compile=False))  # compiling takes longer than training
    folder = sentences.written(tmp_path / "squares", 200)
    _, history = keras_vit.fit(recipe(folder, 40, 12), tmp_path / "run", verbose=0)
    assert history["val_mean_iou"][-1] > 0.8
    model = keras_vit.from_pretrained(tmp_path / "run")
    asked, others = [], []
    for number in range(300, 308):  # of no split
        image, masks = sentences.scene(number)
        (absent,) = {*sentences.COLORS} - {*masks}
        names = [*masks, absent]
        [found] = keras_vit.segment_prompts(model, image, [f"the {name} square" for name in names])
        for i, name in enumerate(masks):
            one, other = masks[name] == 1, masks[names[1 - i]] == 1
            asked.append(found[one, i].mean())
            others += [found[other, i].mean(), found[one, 2].mean()]
    assert np.mean(asked) > 0.7 and min(asked) > max(others) and np.mean(others) < 0.2


def test_arrays():
    bare = Recipe(name="a", task=TASK, model=MODEL, data=Data(batch_size=2))
    arrays = (IMAGES, MASKS, ["a cat", ["a dog", "a hound"], "a cat"])
    settled, train, validation = on_data(bare, arrays, arrays)
    assert train.targets["texts"].shape == (3, 2, 6 + 4) and validation.targets["texts"].shape == (3, 6)
    assert settled.task.text_of(validation.targets["texts"][1]) == "a dog"
    without = dataclasses.replace(bare, task=dataclasses.replace(TASK, absent=0.0))
    assert on_data(without, arrays, arrays)[1].targets["texts"].shape == (3, 2, 6)
    x, y = next(iter(pipeline.training_batches(train, settled, (16, 16, 3))))
    assert x["images"].shape == (2, 16, 16, 3) and x["texts"].shape == (2, 6) and y.shape == (2, 16, 16, 1)
    x, y = next(iter(pipeline.evaluation_batches(validation, settled, (16, 16, 3))))
    np.testing.assert_array_equal(y, MASKS[:2])
    assert x["texts"].shape == (2, 6)


def test_sentences_of_other_images_have_empty_masks():
    import tensorflow as tf

    task = dataclasses.replace(TASK, absent=0.99).on(source(("a cat", "a dog", "a cow")))
    ids = task.read(source(("a cat", "a dog", "a cow")), training=True).targets["texts"]
    examples = {"texts": tf.constant(ids), "segmentation_masks": tf.constant(MASKS)}
    found = task.prepare(examples, (0, 3))
    said = [task.text_of(row) for row in found["texts"].numpy()]
    changed = np.array([text != own for text, own in zip(said, ("a cat", "a dog", "a cow"))])
    assert changed.any() and {*said} <= {"a cat", "a dog", "a cow"}
    np.testing.assert_array_equal(found["segmentation_masks"].numpy().any((1, 2, 3)), ~changed)


def test_masks_must_say_where_a_sentence_is_true():
    assert TASK.on(source()).words and TASK.on(source(), MODEL).words
    void = np.where(MASKS == 0, 255, MASKS).astype("uint8")
    TASK.on(source(masks=void), MODEL)
    with pytest.raises(
        ValueError, match=r"1, where the sentence is true, 0 elsewhere, .*Received: \[2\], such as 2 in"
    ):
        TASK.on(source(masks=MASKS * 2))
    dataclasses.replace(TASK, void=2).on(source(masks=np.maximum(MASKS, 2 - 2 * MASKS)), MODEL)
    with pytest.raises(ValueError, match=r"must have pixels of the value 1.* Received: only \[0, 255\]"):
        TASK.on(source(masks=MASKS * 255), MODEL)
    with pytest.warns(UserWarning, match="must have pixels of the value 1"):
        TASK.on(source(masks=MASKS * 255))  # a split for evaluation


def test_answers_and_pictures():
    task = dataclasses.replace(TASK, words=("<pad>", "<end>", "<unknown>", "a", "cat"), threshold=0.7)
    output = np.full((4, 8, 1), -9.0, "float32")
    output[:, :2], output[:, 2:4] = 2.0, 0.5  # 0.88, and 0.62: below the threshold
    answer = task.answer(output)
    assert answer == {"area": 0.25, "highest probability": pytest.approx(1 / (1 + np.exp(-2.0)))}
    assert task.said(answer) == "25.0% of the area, highest probability 88.1%"
    assert task.said(task.answer(output - 9)) == "nothing, highest probability below 0.1%"
    assert task.said(dict(task.listed(output, 1))) == "25.0% of the area"
    assert task.caption(output, {"texts": task.ids_of()("a cat")[0]}).startswith("a cat: 25.0% of the area")
    assert task.result(output, (8, 16)).sum() == 8 * 5  # the edge is between two columns
    assert task.result(output, (4, 8)).dtype == np.uint8 and [*task.legend()] == ["found"]
    image = np.full((4, 8, 3), 100.0)
    both = task.picture(image, output, {"segmentation_masks": np.zeros((4, 8, 1), "uint8")})
    assert both.shape == (4, 17, 3) and (both[:, :2] != 100).any() and (both[:, 2:8] == 100).all()
    assert (both[:, 9:] == 100).all()


def test_files_of_runs_without_texts_are_as_before():
    plain = Recipe(name="a", task=Segment(classes=("a", "b")), model=MODEL)
    described = Recipe(name="a", task=TASK, model=MODEL)
    before = {"kind", "classes", "head", "first", "void", "class_weights", "dice"}
    assert {*config.to_dict(plain)["task"]} == before
    values = json.loads(json.dumps(config.to_dict(described)))
    assert values["task"]["text"] is True and config.from_dict(values).task == TASK
    assert config.override(described, {"task.length": 8}).task.length == 8
    assert Segment(text=True).head == "film" and Segment().head == "linear"
    assert Segment().inputs == ("images",) and TASK.inputs == ("images", "texts")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(text=False), "Segment.length needs text=True. Received: length=6 without"),
        (dict(head="dpt"), "has the head 'film'. Received: head='dpt'"),
        (dict(classes=("a", "b")), r"leave classes and their options out. Received: classes=\('a', 'b'\)"),
        (dict(kind="panoptic"), "Received: kind='panoptic'"),
        (dict(first=1, class_weights=True), "Received: first=1, class_weights=True"),
        (dict(void=1), "Segment.void must not be 0 or 1.* Received: 1"),
        (dict(tower={"length": 3}), r"The task sets the text tower's length. Received: task.tower=\{'length': 3\}"),
        (dict(absent=1.0), "Segment.absent must be at least 0 and below 1. Received: 1.0"),
        (dict(threshold=1.0), "Segment.threshold must be at least 0.001 and at most 0.999. Received: 1.0"),
        (
            dict(head={"kind": "film", "blocks": [2, 1]}),
            r"must be different numbers in their order. Received: \[2, 1\]",
        ),
        (dict(head={"kind": "film", "refined": 1}), "must be True or False. Received: .*refined=1"),
    ],
)
def test_options_that_do_not_fit(options, message):
    if options.get("text") is False:
        options = {"head": "linear", "tower": None, **options}
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(TASK, **options)


def test_a_head_of_sentences_needs_sentences():
    with pytest.raises(ValueError, match=r"Segment.head='film' is for text=True. Received: text=False"):
        Segment(head="film")


@pytest.mark.parametrize(
    ("task", "changes", "message"),
    [
        ({}, dict(augment=Augment(flip=True)), "left and right, .*leave them out. Received: augment.flip=True"),
        ({}, dict(augment=Augment(mixup=0.2)), "Received: augment.mixup=0.2"),
        ({}, dict(optim=Optim(lora=2)), "Received: optim.lora=2"),
        ({}, dict(optim=Optim(freeze="all")), "needs model.weights of both. Received: weights=None, task.tower="),
        ({}, dict(data=Data(resize=256)), "data.resize=256"),
        (dict(tower=None), dict(model={"weights": "x", "image_size": 16, "depth": 2}), "own sizes.*Received: depth=2"),
        ({}, dict(model={"weights": "x", "image_size": 16}, optim=Optim(freeze="all")), "weights='x', task.tower="),
        (dict(words=("a",), tokens="b"), {}, "`words` and `tokens` exclude each other"),
    ],
)
def test_settings_that_contradict_each_other(task, changes, message):
    task = dataclasses.replace(TASK, **task)
    with pytest.raises(ValueError, match=message):
        task.check(Recipe(**{"name": "a", "task": task, "model": MODEL, **changes}))
