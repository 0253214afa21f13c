"""Text towers, and models of images and texts, in every format."""

import json

import keras
import numpy as np
import pytest

pytest.importorskip("tensorflow")

import keras_vit
from keras_vit import text_tower, two_towers, vit
from keras_vit.export import examples, runtimes
from keras_vit.traits import Traits
from tests.export.small import OF_TEXTS, WORDS
from tests.export.test_metadata import read
from tests.marks import few, slow

OUTPUTS = {"text": "embeddings", "answers": "logits", "pairs": "pairs"}
NAMES = {"text": ["texts"], "answers": ["images", "texts"], "pairs": ["images", "texts"]}


@slow
@few(1)
@pytest.mark.parametrize("kind", OUTPUTS)
def test_every_format_gives_the_model_s_outputs_by_name(tmp_path, untimed, kind):
    model = OF_TEXTS[kind]()
    given = examples.drawn(Traits(model), 5)
    expected = np.asarray(model(given))
    written = {
        "saved": (keras_vit.export_saved_model, runtimes.saved_model, {"warm_up": (1, 3)}),
        "m.tflite": (keras_vit.export_tflite, runtimes.tflite, {}),
        "half.tflite": (keras_vit.export_tflite, runtimes.tflite, {"quantize": "float16", "batch_size": 3}),
        "m.onnx": (keras_vit.export_onnx, runtimes.onnx, {}),
        "m.xml": (keras_vit.export_openvino, runtimes.openvino, {"batch": 2}),
    }
    for name, (export, load, options) in written.items():
        report = export(model, tmp_path / name, **options)
        assert report.images == 8 and report.max_abs_diff < (5e-3 if name == "half.tflite" else 1e-4) * report.range
        assert f"on 8 {' and '.join(NAMES[kind])}: largest" in str(report) and report.agreement > 0.95
        tolerance = 0.1 if name == "half.tflite" else 1e-3
        np.testing.assert_allclose(load(tmp_path / name)[0](given), expected, atol=tolerance, err_msg=name)
    about = json.loads((tmp_path / "m.tflite.json").read_text())
    assert about["texts"] == {"shape": [None, 6], "rows": 10, "words": WORDS}
    assert ("input" in about) == ("preprocessing" in about) == ("images" in NAMES[kind])
    [graph] = read(tmp_path / "m.tflite").parts(3)
    file = runtimes.opened(tmp_path / "m.tflite", 1)  # its inputs may have another order than the signature's names
    places = [f"serve_{given.text(0)}:0" for given in graph.parts(2)]
    assert places == [details["name"] for details in file.get_input_details()]
    runner = file.get_signature_runner("serve")
    assert sorted(runner.get_input_details()) == NAMES[kind]
    assert [*runner.get_output_details()] == [OUTPUTS[kind]]
    # Who has the file alone makes ids by its table.
    ids = keras_vit.tokenizer(about["texts"]["words"], about["texts"]["shape"][1])(["a b"])
    pixels = {"images": np.zeros((1, 12, 8, 3), "float32")} if "input" in about else {}
    found = runner(**pixels, texts=ids)[OUTPUTS[kind]]
    np.testing.assert_allclose(found, model({**pixels, "texts": ids} if pixels else ids), atol=1e-4)


def test_bytes_of_pixels_beside_ids_and_int8_is_refused(tmp_path, untimed):
    model = OF_TEXTS["answers"]()
    path = tmp_path / "m.tflite"
    assert keras_vit.export_tflite(model, path, quantize="dynamic", input_dtype="uint8").given == "images and texts"
    details = runtimes.opened(path, 1).get_signature_runner("serve").get_input_details()
    assert {name: one["dtype"].__name__ for name, one in details.items()} == {"images": "uint8", "texts": "int32"}
    text = OF_TEXTS["text"]()
    for export, one, options, message in (
        (keras_vit.export_tflite, model, {"quantize": "int8"}, "of images alone.*'int8' with .* images and texts"),
        (
            keras_vit.export_openvino,
            text,
            {"quantize": "int8"},
            "of images alone: take .* with 'text', which takes texts",
        ),
        (
            keras_vit.export_tflite,
            text,
            {"input_dtype": "uint8"},
            "for models of images. Received: input_dtype='uint8'",
        ),
        (keras_vit.export_tflite, text, {"probabilities": True}, "A vector has no probabilities"),
    ):
        new = tmp_path / ("new.xml" if export is keras_vit.export_openvino else "new.tflite")
        with pytest.raises(ValueError, match=message):
            export(one, new, **options)
    with pytest.raises(ValueError, match="must take images alone. Received: .*m.tflite"):
        keras_vit.compare_layers(path, path, np.zeros((1, 12, 8, 3)))
    with pytest.raises(ValueError, match="must be a Keras model of images"):
        keras_vit.predictor(model)


def test_logits_of_all_images_with_all_texts_are_refused(tmp_path):
    image = vit("mu/4", image_size=8, num_classes=8, depth=1)
    text = text_tower(vocabulary=6, length=2, width=8, depth=1, num_heads=2, end=1, projection=8)
    for model, message in (
        (two_towers(image, text), r'model.get_layer\("text"\), or take two_towers\(..., pairs=True\).*pairs=False'),
        (keras.Model(model_input := keras.Input((7,)), keras.layers.Dense(3)(model_input)), r"shape \(None, 7\)"),
    ):
        with pytest.raises(ValueError, match=message):
            keras_vit.export_tflite(model, tmp_path / "m.tflite")
