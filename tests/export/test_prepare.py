import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

from keras_vit import vit
from keras_vit.export import prepare


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "bfloat16"])
def test_float32_keeps_the_weights(policy):
    model = vit("mu/4", image_size=8, num_classes=3, dtype=policy)
    copy = prepare.float32(model)
    assert {layer.dtype_policy.name for layer in copy._flatten_layers(include_self=False)} == {"float32"}
    for a, b in zip(copy.weights, model.weights):
        assert a.path == b.path
        np.testing.assert_array_equal(a.numpy(), np.asarray(keras.ops.cast(b, "float32")))
    assert prepare.float32(copy) is copy


def half_write(path):
    with prepare.destination(path, True) as temporary:
        temporary.write_text("half")
        raise OSError("disk full")


def test_an_existing_path_is_kept(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(FileExistsError, match="exists"), prepare.destination(path, False):
        pass
    with pytest.raises(OSError, match="disk"):
        half_write(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with prepare.destination(path, True) as temporary:
        temporary.write_text("new")
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_folder_of_yours_is_never_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(FileExistsError, match="no SavedModel"), prepare.destination(tmp_path / "mine", True):
        pass
    assert (tmp_path / "mine").exists()


def test_models_in_models_become_float32():
    inner = vit("mu/4", image_size=8, num_classes=3, dtype="mixed_bfloat16")
    copy = prepare.float32(keras.Sequential([keras.Input((8, 8, 3)), inner, keras.layers.Softmax()]))
    assert {layer.compute_dtype for layer in copy._flatten_layers(include_self=False)} == {"float32"}


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"), prepare.destination(tmp_path / "file" / "inside", False):
        pass


def test_another_backend_is_told(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(RuntimeError, match="KERAS_BACKEND=tensorflow.*'jax'"):
        prepare.need_tensorflow_backend("A SavedModel")
