"""Requests that TensorFlow Serving answers before it says that a model is ready, so that no user waits for the first.

https://www.tensorflow.org/tfx/serving/saved_model_warmup: records of the protocol buffer `PredictionLog`. It is encoded
here, since its classes are in a package of their own (tensorflow-serving-api). All fields that it needs are messages or
texts. Their numbers are those of `prediction_log.proto`, `predict.proto` and `model.proto` in tensorflow/serving.
"""

import numpy as np

FILE = "tf_serving_warmup_requests"  # in assets.extra
MOST = 1000  # requests, of which TensorFlow Serving accepts no more


def write(path, signatures, shape, counts):
    """Writes one request for each signature and number of images, of black images.

    Args:
        path: Folder of a SavedModel.
        signatures: Names of its signatures: `"serve"`, `"serve_bytes"`.
        shape: `(height, width, channels)`.
        counts: Numbers of images.
    """
    import tensorflow as tf

    black = np.zeros(shape, "float32")
    given = {"serve": ("images", black)}
    if "serve_bytes" in signatures:
        given["serve_bytes"] = ("encoded", tf.io.encode_png(black.astype("uint8")).numpy())
    (path / "assets.extra").mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path / "assets.extra" / FILE)) as file:
        for signature, (name, value) in given.items():
            for count in counts:
                values = tf.make_tensor_proto(np.stack([value] * count) if signature == "serve" else [value] * count)
                file.write(_prediction_log(signature, name, values.SerializeToString()))


def _prediction_log(signature, name, tensor):
    """Returns a `PredictionLog` of one request."""
    model_spec = _field(3, signature.encode())
    inputs = _field(1, name.encode()) + _field(2, tensor)  # an entry of a map: key and value
    request = _field(1, model_spec) + _field(2, inputs)
    return _field(6, _field(1, request))  # predict_log, its request


def _field(number, value):
    """Returns a field of bytes, whose tag ends in 2: https://protobuf.dev/programming-guides/encoding."""
    length, left = bytearray(), len(value)
    while left > 127:
        length.append(left & 127 | 128)
        left >>= 7
    return bytes([number << 3 | 2, *length, left]) + value
