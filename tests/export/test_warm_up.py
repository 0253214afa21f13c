import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402

from keras_vit import export_saved_model  # noqa: E402
from keras_vit.export import warm_up  # noqa: E402
from tests.export.small import IMAGES, tiny  # noqa: E402
from tests.marks import slow  # noqa: E402

MESSAGES = {  # of tensorflow/serving: number, name and type of the fields; bytes where the type is left out
    "ModelSpec": [(1, "name", None), (3, "signature_name", None)],
    "Entry": [(1, "key", None), (2, "value", None)],  # an entry of map<string, TensorProto>
    "PredictRequest": [(1, "model_spec", "ModelSpec"), (2, "inputs", "Entry")],
    "PredictLog": [(1, "request", "PredictRequest")],
    "PredictionLog": [(6, "predict_log", "PredictLog")],
}


def prediction_log():
    """Returns the class of these messages, made by Google's own library."""
    file = descriptor_pb2.FileDescriptorProto(name="log.proto", package="serving", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field, kind in fields:
            added = message.field.add(name=field, number=number, label=3 if kind == "Entry" else 1)
            added.type = 11 if kind else 12  # a message or bytes
            if kind:
                added.type_name = f".serving.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("serving.PredictionLog"))


@slow
def test_requests_are_those_of_both_signatures(tmp_path):
    path = tmp_path / "saved"
    export_saved_model(tiny(), path, images=IMAGES, warm_up=[1, 3])
    served, found = tf.saved_model.load(str(path)).signatures, []
    for record in tf.data.TFRecordDataset(str(path / "assets.extra" / "tf_serving_warmup_requests")):
        request = prediction_log().FromString(record.numpy()).predict_log.request
        tensor = type(tf.make_tensor_proto(0)).FromString(request.inputs[0].value)
        signature, name = request.model_spec.signature_name.decode(), request.inputs[0].key.decode()
        found.append((signature, name, tensor.tensor_shape.dim[0].size))
        [logits] = served[signature](**{name: tf.constant(tf.make_ndarray(tensor))}).values()
        assert logits.shape == (found[-1][2], 4) and np.isfinite(logits).all()
    wanted = [("serve", "images", 1), ("serve", "images", 3), ("serve_bytes", "encoded", 1)]
    assert found == [*wanted, ("serve_bytes", "encoded", 3)]


def test_the_numbers_of_images_are_checked_first(tmp_path):
    for wrong in (0, [1, -1], "4", [True]):
        with pytest.raises(ValueError, match="`warm_up` must be a positive integer. Received"):
            export_saved_model(tiny(), tmp_path / "saved", warm_up=wrong)
    with pytest.raises(ValueError, match="`warm_up` must have 500 numbers or fewer. Received: 501"):
        export_saved_model(tiny(), tmp_path / "saved", warm_up=[1] * 501)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("length", [0, 127, 128, 300, 2**21])
def test_lengths_of_fields(length):
    given = {"images": b"x" * length, "texts": b"y" * length}
    inputs = prediction_log().FromString(warm_up._prediction_log("serve", given)).predict_log.request.inputs
    assert {entry.key.decode(): entry.value for entry in inputs} == given
