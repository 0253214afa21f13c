import json
import pathlib
import shutil
import zipfile

import keras
import numpy as np
import pytest
from scipy.special import softmax

import keras_vit
from keras_vit.config import cookbook
from keras_vit.runs import trained
from keras_vit.training import rundir

CHANGES = {"model.depth": 1, "model.width": 16, "model.mlp_dim": 32, "model.num_heads": 2}


@pytest.fixture
def folder(tmp_path):
    """The directory of a run, whose two models are not the same."""
    recipe, folder = keras_vit.load_recipe("digits", {**CHANGES, "name": "mine"}), tmp_path / "run"
    names = [f"digit {i}" for i in range(10)]
    rundir.claim(folder, recipe, {"arrays": True}, names)
    for seed, file in enumerate((rundir.MODEL, rundir.BEST)):
        keras_vit.from_recipe(recipe, {"seed": seed}).save(folder / file)
    return folder


def weights(found):
    return found.model.get_weights()[1].ravel()[0]


def test_a_run_and_the_files_in_it(folder):
    last, best = trained.load_run(folder), trained.load_run(folder, "best.keras")
    by_path = trained.load_run(folder / "best.keras")
    recipe = by_path.recipe
    assert recipe.name == "mine" and by_path.class_names[3] == "digit 3"
    assert weights(best) == weights(by_path) != weights(last) == weights(trained.load_run(str(folder / "model.keras")))
    keras_vit.from_recipe(recipe, {"seed": 5}).save(folder / "third.keras")
    assert trained.load_run(folder / "third.keras").recipe.name == "mine"


def test_a_job_is_of_models_of_several(folder):
    with pytest.raises(ValueError, match="Classify does a single job: leave `job` out. Received: job='x2'"):
        trained.load_run(folder, job="x2")


def test_an_empty_file_of_class_names_is_refused(folder):
    (folder / rundir.LABELS).write_text("")
    with pytest.raises(ValueError, match="labels.txt' is damaged: it must name the 10 classes.*Received: 0"):
        trained.load_run(folder)


def test_a_file_of_other_classes_in_a_run_is_refused(folder):
    keras_vit.vit("Ti/4", image_size=8, depth=1, num_classes=3).save(folder / "other.keras")
    with pytest.raises(ValueError, match=r"other.keras' must have the classes of its run, 10 in .* a model of 3$"):
        trained.load_run(folder / "other.keras")


def test_what_is_made_of_two_models_of_a_run_does_not_mix(folder):
    last, best = trained.load_run(folder), trained.load_run(folder / "best.keras")
    assert (last.home, best.home) == (folder, folder / "best") and last.run == best.run == folder
    assert last.file == str(folder / "model.keras") and best.file == str(folder / "best.keras")
    assert last.on_arrays and best.on_arrays and not last.shipped and not best.alone
    assert trained.load_run(best) is best


@pytest.mark.backend
def test_a_file_outside_of_a_run_says_what_it_knows(tmp_path):
    recipe = keras_vit.load_recipe("digits", {**CHANGES, "data.resize": 10, "data.method": "bicubic"})
    model = keras_vit.from_recipe(recipe)
    model.save(tmp_path / "plain.keras")
    model.get_layer("rescale").metadata["labels"] = [f"digit {i}" for i in range(10)]
    model.save(tmp_path / "named.keras")
    model.get_layer("rescale").metadata["labels"] = ["one", "two"]
    model.save(tmp_path / "wrong.keras")
    plain, named, wrong = (trained.load_run(tmp_path / f"{name}.keras") for name in ("plain", "named", "wrong"))
    assert plain.recipe is None and plain.alone and not plain.shipped and plain.run is None
    assert plain.class_names == wrong.class_names == tuple("0123456789")
    assert named.class_names[3] == "digit 3" and named.home == tmp_path / "named"
    assert plain.bound.data.resize is None  # its arrays have the model's size


def test_a_recipe_s_file_is_its_run_also_if_it_names_weights(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(cookbook.recipe_path("mnist"), "mine.py")
    assert trained.load_run("mine.py").shipped
    shutil.copytree(folder, "runs/mnist")
    found = trained.load_run("mine.py")
    assert not found.shipped and found.run == pathlib.Path("runs/mnist") and found.class_names[0] == "digit 0"


def test_a_recipe_s_own_weights():
    found = trained.load_run("mnist")
    assert found.shipped and found.recipe.name == "mnist" and found.file == "mnist.keras"
    assert len(found.class_names) == 10 and str(found.home) == str(pathlib.Path("exports/mnist"))


@pytest.mark.parametrize("name", ["nonsense", "last.keras", "", None])
def test_unknown_files_of_a_run_are_refused(name, folder):
    for target in (folder, "mnist"):
        with pytest.raises(ValueError, match="`file` must be one of 'model.keras', 'best.keras'. Received: file="):
            trained.load_run(target, name)


def test_a_file_of_what_is_no_run_is_refused(folder):
    for target in ("mnist", folder / "model.keras"):
        with pytest.raises(ValueError, match=r"file='best.keras' is for the directory of a run. Received: '.*'"):
            trained.load_run(target, "best.keras")


def text(path):
    path.write_text("no model")


def half(path):
    keras_vit.vit("Ti/4", image_size=8, depth=1, num_classes=2).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path):
    keras_vit.vit("Ti/4", image_size=8, depth=1, num_classes=2).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:5000] + bytes(255 - b for b in whole[5000:5050]) + whole[5050:])


def archive(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", json.dumps({"class_name": "Nothing"}))


def vectors(path):
    inputs = keras.Input((4,))
    keras.Model(inputs, keras.layers.Dense(3)(inputs)).save(path)


def maps(path):
    inputs = keras.Input((None, None, 3))
    keras.Model(inputs, keras.layers.Conv2D(3, 1)(inputs)).save(path)


def two(path):
    inputs = keras.Input((8, 8, 3))
    flat = keras.layers.Flatten()(inputs)
    keras.Model(inputs, [keras.layers.Dense(3)(flat), keras.layers.Dense(2)(flat)]).save(path)


@pytest.mark.parametrize(
    "make, said",
    [
        (text, "is damaged, or not a Keras model: File is not a zip file"),
        (half, "is damaged, or not a Keras model: File is not a zip file"),
        (flipped, "is damaged, or not a Keras model: "),
        (archive, "is damaged, or not a Keras model: "),
        (vectors, r"must be a model of images, .* Received: input shape \(None, 4\)"),
        (maps, r"must be a model of images, .* Received: input shape \(None, None, None, 3\)"),
        (two, r"must be an image classifier: .* output shape \[\(None, 3\), \(None, 2\)\]"),
    ],
)
def test_what_is_no_image_classifier_is_named(make, said, tmp_path):
    make(tmp_path / "mine.keras")
    with pytest.raises(ValueError, match=f"mine.keras' {said}") as error:
        trained.load_run(tmp_path / "mine.keras")
    assert "\n" not in str(error.value)


def test_any_keras_model_of_images_and_classes_is_one(tmp_path):
    inputs = keras.Input((8, 8, 3))
    keras.Model(inputs, keras.layers.Dense(3)(keras.layers.Flatten()(inputs))).save(tmp_path / "mine.keras")
    found = trained.load_run(tmp_path / "mine.keras")
    assert found.recipe is None and found.class_names == ("0", "1", "2")
    assert np.shape(keras_vit.preprocess(found.model, np.zeros((5, 6, 3), "uint8"))) == (1, 8, 8, 3)


def test_a_model_in_memory_is_what_its_file_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = keras_vit.vit("mu/4", image_size=8, num_classes=2, name="mine")
    images, labels = np.zeros((2, 8, 8, 3), "uint8"), np.arange(2)
    assert trained.load_run(model).class_names == ("0", "1")
    model.get_layer("rescale").metadata["labels"] = ["cat", "dog"]
    model.save("mine.keras")
    found, file = trained.load_run(model), trained.load_run("mine.keras")
    assert found.model is model and found.alone and found.in_memory and not file.in_memory and not found.shipped
    assert found.class_names == file.class_names == ("cat", "dog") and found.task == file.task
    [(name, scores)] = keras_vit.evaluate(model, arrays=(images, labels)).items()
    assert name == "mine" and scores == keras_vit.evaluate("mine.keras", arrays=(images, labels))["mine.keras"]
    with pytest.raises(ValueError, match="file='best.keras' is for the directory of a run. Received: a model that is"):
        trained.load_run(model, "best.keras")
    for needs in (keras_vit.evaluate, keras_vit.report):
        with pytest.raises(ValueError, match=r"'mine' has no data: .* or `arrays`, \(images, labels\)\.$"):
            needs(model)


def test_exports_of_another_model_of_that_name_are_not_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "exports" / "mine").mkdir(parents=True)
    (tmp_path / "exports" / "mine" / "model.tflite").write_bytes(b"of another")
    model = keras_vit.vit("mu/4", image_size=8, num_classes=2, name="mine")
    assert [*keras_vit.evaluate(model, arrays=(np.zeros((2, 8, 8, 3), "uint8"), np.arange(2)))] == ["mine"]


def features():
    return keras_vit.vit("mu/4", image_size=8, num_classes=0)


def of_texts():
    images, texts = keras.Input((8, 8, 3), name="images"), keras.Input((4,), dtype="int32", name="texts")
    both = keras.layers.Concatenate()([keras.layers.Flatten()(images), keras.layers.Flatten()(texts)])
    return keras.Model({"images": images, "texts": texts}, keras.layers.Dense(3)(both))


@pytest.mark.parametrize(
    "make, said",
    [
        (features, r"must be an image classifier: it has no head. Received: .*\(None, 32\)"),
        (of_texts, "must take images alone: .* Received: 2 inputs"),
        (lambda: keras.Sequential([keras.layers.Dense(3)]), "must be a model of images, .* a model without a known in"),
    ],
)
def test_a_model_that_cannot_answer_alone_is_named(make, said):
    with pytest.raises(ValueError, match=said):
        trained.load_run(make())


@pytest.mark.parametrize(
    "target, kind, said",
    [
        ("runs/nothing", FileNotFoundError, "There is no run 'runs/nothing'."),
        ("nothing.keras", FileNotFoundError, "There is no file 'nothing.keras'."),
        (
            "a.txt",
            ValueError,
            "A trained model must be a run directory, a .keras file or a recipe's name. Received: 'a.t",
        ),
        (".", ValueError, "'.' is not a run directory: it has no recipe.json."),
        ("nothing", ValueError, "There is no recipe 'nothing'."),
        ("digits", ValueError, "The recipe 'digits' has no trained weights"),
    ],
)
def test_what_is_nothing_is_named(target, kind, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("")
    with pytest.raises(kind, match=f"^{said}"):
        trained.load_run(target)


@pytest.mark.parametrize("name, kind", [("digits", ValueError), ("mine", FileNotFoundError)])
def test_a_run_where_fit_writes_is_pointed_to(name, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / name).mkdir(parents=True)
    (tmp_path / "runs" / name / "recipe.json").write_text("{}")
    with pytest.raises(kind, match=f"'{name}'.* Did you mean 'runs/{name}'?"):
        trained.load_run(name)


def test_probabilities_are_not_softened_twice(tmp_path):
    inside = keras_vit.vit("mu/4", image_size=8, num_classes=3)
    inside.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(32, 3)))
    images = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3)).astype("float32")
    expected = keras.ops.convert_to_numpy(keras.ops.softmax(inside(images)))
    inputs = keras.Input((8, 8, 3))
    for last in (keras.layers.Softmax(), keras.layers.Activation("softmax")):
        model = keras.Model(inputs, last(inside(inputs)))
        for eager in (True, False):
            np.testing.assert_allclose(softmax(trained.forward(model, eager)(images), -1), expected, atol=1e-6)
    np.testing.assert_allclose(softmax(trained.forward(inside)(images), -1), expected, atol=1e-6)


def test_a_recipe_of_other_classes_is_no_trained_model(tmp_path):
    text = (
        (pathlib.Path(__file__).parents[2] / "recipes" / "mnist.py")
        .read_text()
        .replace("num_classes=10", "num_classes=3")
    )
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ValueError, match=r"do not fit this model. Different: num_classes"):
        trained.load_run(tmp_path / "mine.py")


def test_arrays_for_a_file_are_what_its_model_sees(tmp_path):
    """They are of its size already: the crop of its evaluation rule is over."""
    rule = {"resize": "crop", "crop_pct": 0.5, "interpolation": "bicubic", "antialias": True}
    model = keras_vit.vit("mu/4", image_size=16, num_classes=5, metadata={"evaluation": rule})
    model.get_layer("head").kernel.assign(np.random.default_rng(0).normal(size=(32, 5)))
    photographs = np.random.default_rng(0).integers(0, 256, (30, 40, 50, 3)).astype("uint8")
    images = keras_vit.preprocess(model, photographs)
    classes = np.asarray(model(images)).argmax(-1)
    assert len(set(classes)) > 1
    model.save(tmp_path / "a.keras")
    assert keras_vit.evaluate(tmp_path / "a.keras", arrays=(images, classes)) == {
        str(tmp_path / "a.keras"): {"accuracy": 1.0}
    }
