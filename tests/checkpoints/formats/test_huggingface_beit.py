import json

import numpy as np
import pytest
import safetensors.numpy

from keras_vit import from_checkpoint
from keras_vit.checkpoints.arguments import arguments_of
from keras_vit.checkpoints.formats import huggingface_beit
from keras_vit.checkpoints.save import _arrays
from keras_vit.models.options import merged
from keras_vit.utils.resampling import resize_distances, resize_matrix
from tests.checkpoints.helpers import assert_same_weights, filled, weights

pytestmark = pytest.mark.backend

BEIT = dict(image_size=32, position="relative", block={"key_bias": False, "layer_scale": 0.1}, norm={"epsilon": 1e-12})


def written(folder, config=None, **options):
    """Returns a model, and the path of its file under transformers' names."""
    model = filled(**{**BEIT, **options})
    arrays = _arrays(model, huggingface_beit.FORMAT, arguments_of(model))
    arrays = {name if name.startswith("classifier") else f"beit.{name}": array for name, array in arrays.items()}
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps({"model_type": "beit", **config}))
    return model, folder


@pytest.mark.parametrize("config", [None, {"num_attention_heads": 3, "image_size": 32}])
@pytest.mark.parametrize(
    "options",
    [dict(pooling="gap", final_norm="after", tokens={"class_token": True}), dict(num_classes=0), dict(num_classes=3)],
)
def test_it_is_read(options, config, tmp_path):
    model, path = written(tmp_path, config, **options)
    again = from_checkpoint(path)
    assert_same_weights(weights(again), weights(model))
    assert merged(arguments_of(again), {"block": {"layer_scale": 0.1}}) == arguments_of(model)


def test_another_size_is_bilinear(tmp_path):
    model, path = written(tmp_path, num_classes=0)
    table = "block_1/attention/distances/table"
    found = weights(from_checkpoint(path, image_size=(32, 48)))[table]
    expected = resize_distances(weights(model)[table], (4, 4), (4, 6), "bilinear")
    np.testing.assert_array_equal(found, expected)
    lines = weights(model)[table][:49].reshape(7, 7, -1)  # rows stay
    by_hand = np.einsum("uc,rch->ruh", resize_matrix(7, 11, "bilinear"), lines).reshape(77, -1)
    np.testing.assert_allclose(found[:77], by_hand, atol=1e-6)


def test_another_model_type_is_refused(tmp_path):
    _, path = written(tmp_path, {"model_type": "beit3"})
    with pytest.raises(ValueError, match="`model_type` must be one of beit, data2vec-vision. Received: 'beit3'"):
        from_checkpoint(path)
