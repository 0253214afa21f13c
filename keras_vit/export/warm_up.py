"""Requests that TensorFlow Serving answers before it says that a model is ready, so that no user waits for the first.

https://www.tensorflow.org/tfx/serving/saved_model_warmup: records of the protocol buffer `PredictionLog`. It is encoded
here, since its classes are in a package of their own (tensorflow-serving-api). All fields that it needs are messages or
texts. Their numbers are those of `prediction_log.proto`, `predict.proto` and `model.proto` in tensorflow/serving.
"""

import numpy as np

from keras_vit.models.inputs import TYPES

FILE = "tf_serving_warmup_requests"  # in assets.extra
MOST = 1000  # requests, of which TensorFlow Serving accepts no more


def write(path, signatures, shapes, counts):
    """Writes one request for each signature and number of images, of black images and ids of zero.

    Args:
        path: Folder of a SavedModel.
        signatures: Names of its signatures: `"serve"`, `"serve_bytes"`.
        shapes: `inputs_of` the model.
        counts: Numbers of images.
    """
    import tensorflow as tf

    examples = {"serve": {name: np.zeros(shape, TYPES[name]) for name, shape in shapes.items()}}
    if "serve_bytes" in signatures:
        examples["serve_bytes"] = {"encoded": tf.io.encode_png(examples["serve"]["images"].astype("uint8")).numpy()}
    (path / "assets.extra").mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path / "assets.extra" / FILE)) as file:
        for signature, values in examples.items():
            for count in counts:
                batches = {k: np.stack([x] * count) if signature == "serve" else [x] * count for k, x in values.items()}
                tensors = {name: tf.make_tensor_proto(x).SerializeToString() for name, x in batches.items()}
                file.write(_prediction_log(signature, tensors))


def _prediction_log(signature, tensors):
    """Returns a `PredictionLog` of one request."""
    model_spec = _field(3, signature.encode())
    inputs = (_field(1, name.encode()) + _field(2, x) for name, x in tensors.items())  # entries of a map: key and value
    request = _field(1, model_spec) + b"".join(_field(2, entry) for entry in inputs)
    return _field(6, _field(1, request))  # predict_log, its request


def _field(number, value):
    """Returns a field of bytes, whose tag ends in 2: https://protobuf.dev/programming-guides/encoding."""
    length, rest = bytearray(), len(value)
    while rest > 127:
        length.append(rest & 127 | 128)
        rest >>= 7
    return bytes([number << 3 | 2, *length, rest]) + value
