"""What a model returns for files: batch by batch, whatever their number."""

import types

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit.data import pipeline
from keras_vit.runs import passage, predictions, trained


def test_predict_gives_the_run_s_own_answers_in_bounded_batches(run, pictures, monkeypatch):
    recipe = keras_vit.load_run("mnist").recipe
    model = keras_vit.from_recipe("mnist", pretrained=True)
    logits = model(pipeline.read_files(pictures, model.input_shape[1:], recipe.data), training=False)
    wanted = keras.ops.convert_to_numpy(keras.ops.softmax(logits))
    batches, real = [], trained.forward
    counted = lambda run: lambda images: batches.append(len(images)) or run(images)  # noqa: E731
    monkeypatch.setattr(trained, "forward", lambda *given, **more: counted(real(*given, **more)))
    monkeypatch.setattr(passage, "IMAGES", 2)
    found = predictions.predict("mnist", [str(file) for file in pictures], top=10)
    assert batches == [2, 2, 1]
    got = [[dict(classes)[name] for name in keras_vit.load_run("mnist").class_names] for classes in found]
    np.testing.assert_allclose(got, wanted, atol=1e-6)
    monkeypatch.setattr(passage, "VALUES", 1)
    assert len(predictions.predict(run, pictures)) == 5 and batches[3:] == [1] * 5


def test_many_images_are_answered_by_a_graph_of_one_batch_size(run, pictures, monkeypatch, capsys):
    few, asked, real = predictions.predict(run, pictures), [], trained.forward
    monkeypatch.setattr(passage, "TRACED", 5)
    monkeypatch.setattr(passage, "IMAGES", 2)
    noted = lambda run, eager: lambda images: asked.append((len(images), eager)) or run(images)  # noqa: E731
    monkeypatch.setattr(trained, "forward", lambda model, eager: noted(real(model, eager), eager))
    many = predictions.predict(run, pictures)
    assert asked == [(2, False)] * 3 and [[*dict(one)] for one in many] == [[*dict(one)] for one in few]
    np.testing.assert_allclose([[*dict(one).values()] for one in many], [[*dict(one).values()] for one in few], 1e-5)
    assert not capsys.readouterr().err  # it took no three seconds


def test_each_file_has_its_own_text_in_every_batch(pictures, monkeypatch):
    """The answer of this model is what it is asked."""
    monkeypatch.setattr(passage, "IMAGES", 2)
    data = keras_vit.load_recipe("mnist").data
    asking = types.SimpleNamespace(
        alone=False,
        size=(28, 28, 1),
        recipe=types.SimpleNamespace(data=data),
        task=types.SimpleNamespace(whole=False, clips=None, inputs=("images", "texts")),
        viewer=lambda eager: lambda inputs: inputs["texts"],
    )
    files = [*pictures[:2], pictures[0].with_name("missing.png"), *pictures[2:]]
    rows = np.arange(len(files))[:, None]
    found = [*passage.outputs(asking, files, {"texts": rows}, len, None)]
    assert [each.path for each in found] == files and [bool(each.error) for each in found].index(True) == 2
    assert [each.output.tolist() for each in found if not each.error] == [[0], [1], [3], [4], [5]]
    assert all(each.source == each.path.stat().st_size for each in found if not each.error)
