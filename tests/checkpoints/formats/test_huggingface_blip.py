import json
import types

import numpy as np
import pytest

from keras_vit.checkpoints.formats import huggingface_blip, huggingface_clip
from tests.captions import FOLDER, arrays_in, numbers, original

CASE = "blip_captioning"


def read(form, processor=None, **config):
    arrays = arrays_in(CASE)
    own = json.loads((FOLDER / CASE / "config.json").read_text()) | config
    names = form.names({name: array.shape for name, array in arrays.items()})
    shapes = {name: arrays[place].shape for name, place in names.items()}
    return form.architecture(shapes, types.SimpleNamespace(config=own, processor=processor or {}))


def test_the_image_tower():
    arguments, evaluation, _ = read(huggingface_blip.FORMAT)
    assert (arguments["width"], arguments["depth"], arguments["num_heads"], arguments["mlp_dim"]) == (36, 2, 3, 64)
    assert arguments["mean"][0] == pytest.approx(0.48145466) and arguments["norm"]["epsilon"] == 1e-5
    assert evaluation["resize"] == "direct" and evaluation["interpolation"] == "bicubic"
    stated = {"image_processor_type": "BlipImageProcessor", "size": {"height": 32, "width": 32}, "resample": 2}
    assert read(huggingface_blip.FORMAT, stated)[1]["interpolation"] == "bilinear"
    names = set(arrays_in(CASE))
    assert huggingface_blip.FORMAT.detect(names) and not huggingface_blip.FORMAT.detect({"vision_model.x"})
    assert huggingface_clip.FORMAT.detect(names)  # so BLIP comes first in the table


def test_the_decoder():
    arguments, tokens, _ = read(huggingface_blip.TEXT_FORMAT)
    assert tokens == {"tokens": "bert", "start": 101, "end": 85, "pad": 0}
    sizes = dict(vocabulary=103, length=24, width=32, depth=2, num_heads=4, mlp_dim=48, context_width=36)
    assert sizes.items() <= arguments.items() and arguments["transform"] and arguments["logit_bias"]
    arguments, tokens, _ = read(huggingface_blip.TEXT_FORMAT, text_config={})
    assert arguments["num_heads"] == 8 and tokens == {"tokens": "bert", "start": 30522, "end": 102, "pad": 0}
    with pytest.raises(ValueError, match="needs its config.json in the same folder: .*Received: model_type 'clip'"):
        read(huggingface_blip.TEXT_FORMAT, model_type="clip")


def test_one_matrix_of_queries_keys_and_values():
    arrays, model = arrays_in(CASE), original(CASE)
    kernel = model.get_layer("image").get_layer("block_1").attention.qkv.kernel
    np.testing.assert_array_equal(numbers(kernel), arrays["vision_model.encoder.layers.1.self_attn.qkv.weight"].T)
    bias = numbers(model.get_layer("text").get_layer("words").bias)
    np.testing.assert_array_equal(bias, arrays["text_decoder.cls.predictions.bias"])
