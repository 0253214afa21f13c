import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")
pytest.importorskip("onnxruntime")
pytest.importorskip("tf2onnx")

import onnx
import onnxruntime

import keras_vit
from keras_vit.export import matrices


class Parts(keras.Model):
    """A table that is read and multiplied by, a dense layer, and a matrix that nothing reads."""

    def __init__(self):
        super().__init__()
        self.table = self.add_weight(shape=(500, 256), initializer="random_normal", name="table")
        self.unused = self.add_weight(shape=(300, 400), name="unused")
        self.dense = keras.layers.Dense(256, "relu")

    def call(self, inputs):
        words = keras.ops.take(self.table, inputs["ids"], axis=0)
        return {"logits": keras.ops.matmul(self.dense(words), keras.ops.transpose(self.table)), "words": words}


def test_large_matrices_come_after_the_conversion_and_once(tmp_path, monkeypatch):
    model, ids, sizes, load = Parts(), {"ids": np.array([[3, 499, 0], [7, 7, 1]], "int32")}, [], onnx.load
    monkeypatch.setattr(onnx, "load", lambda path: (sizes.append(path.stat().st_size), load(path))[1])
    expected = model(ids)
    written = matrices.converted(model, ids, tmp_path / "m.onnx", free=["ids"])
    assert sizes[0] < 20_000 and [each.name for each in written.graph.input] == ["ids"]
    large = sorted(tuple(each.dims) for each in written.graph.initializer if np.prod(each.dims) > 10_000)
    assert large == [(256, 256), (500, 256)]
    onnx.checker.check_model(written, full_check=True)
    session = onnxruntime.InferenceSession(written.SerializeToString())
    for some in (ids["ids"], ids["ids"][:1]):
        for output, found in zip(session.get_outputs(), session.run(None, {"ids": some})):
            np.testing.assert_allclose(found, expected[output.name][: len(some)], rtol=1e-4, atol=1e-6)


def test_graphs_inside_operators_are_read():
    inner = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["b"], ["c"])], "inner", [], [])
    nodes = [onnx.helper.make_node("If", ["a"], ["d"], then_branch=inner, else_branch=inner)]
    assert set(matrices._read(onnx.helper.make_graph(nodes, "outer", [], []))) == {"a", "b"}


GROUPS = [dict(groups=2), dict(groups=8), dict(groups=8, strides=2, padding="same"), dict(groups=4, dilation_rate=2)]


def _gelu(x):
    return keras.ops.gelu(x, approximate=False)


def _of_others(what):
    """Returns a model as others write them."""
    x = keras.Input((9, 9, 8))
    if what == "gelu":
        features = _gelu(keras.layers.Conv2D(8, 3, activation=_gelu)(x))
    elif what == "constant":
        mean = keras.ops.convert_to_tensor(np.arange(8, dtype="float32"))
        features = keras.layers.Conv2D(8, 3)((x - mean) * keras.ops.ones((9, 9, 8)))
    else:
        features = keras.layers.Conv2D(8, 3, **what)(x)
    return keras.Model(x, keras.layers.Dense(3)(keras.ops.mean(features, (1, 2))))


@pytest.mark.compiled
@pytest.mark.parametrize("what", ["gelu", "constant", *GROUPS], ids=str)
def test_what_others_write_is_exported(what, tmp_path):
    model, x = _of_others(what), np.random.default_rng(0).normal(size=(2, 9, 9, 8)).astype("float32")
    keras_vit.export_onnx(model, tmp_path / "m.onnx", images=x)
    (found,) = onnxruntime.InferenceSession(str(tmp_path / "m.onnx")).run(None, {"images": x})
    np.testing.assert_allclose(found, model.predict(x, verbose=0), atol=1e-5)


@pytest.mark.compiled
def test_operators_that_onnx_lacks_are_named(tmp_path):
    x = keras.Input((9, 9, 8))
    model = keras.Model(x, keras.layers.Flatten()(keras.ops.erfinv(keras.ops.tanh(x))))
    with pytest.raises(RuntimeError, match=r"^ONNX has no operators for: Erfinv\.$"):
        keras_vit.export_onnx(model, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
