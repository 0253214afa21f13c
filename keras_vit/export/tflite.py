"""TFLite (LiteRT), for phones and small boards."""

import dataclasses
import re

from keras_vit import checks
from keras_vit.export import check, prepare, saved_model


def export_tflite(model, path, *, batch_size=1, images=None, overwrite=False):
    """Writes a TFLite file that takes raw pixels, runs it in LiteRT and compares it with the model, both in
    float32.

    Float32, with LiteRT's own operators only and static shapes. Its signature `serve` goes from `images`
    (float32, 0..255) to `logits`.

    Args:
        model: A Keras model from pixels to logits, under any precision policy; written in float32.
        path: File to write, ending in `.tflite`; must not exist.
        batch_size: Number of images of one call.
        images: Pixels to compare on, `(batch, height, width, channels)`, 0..255; random ones if `None`.
        overwrite: Whether to replace what is at `path`.

    Returns:
        A `Report`.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is false.
        ValueError: If `path` does not end in `.tflite`.
        RuntimeError: If the backend is not TensorFlow, the model needs operators that LiteRT lacks, or the written
            model gives other logits; nothing is kept then.
    """
    prepare.need_tensorflow_backend("A TFLite file")
    import tensorflow as tf

    if not str(path).endswith(".tflite"):
        raise ValueError(f"A TFLite file ends in .tflite. Received: path={str(path)!r}")
    checks.positive(batch_size=batch_size)
    model, images = prepare.float32(model), check.sample(model, images)
    with prepare.destination(path, overwrite) as temporary:
        graph = temporary.with_suffix(".graph")
        saved_model.write(model, graph, batch_size)
        converter = tf.lite.TFLiteConverter.from_saved_model(str(graph), signature_keys=["serve"])
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
        try:
            temporary.write_bytes(converter.convert())
        except Exception as error:  # the converter's own class is not public
            operators = sorted(set(re.findall(r"\btf\.(\w+)\(", str(error)))) or [str(error).strip().splitlines()[0]]
            raise RuntimeError(f"LiteRT has no operators of its own for: {', '.join(operators[:10])}.") from None
        report = check.report(temporary, model, images, *check.tflite(temporary))
    return dataclasses.replace(report, path=str(path))
