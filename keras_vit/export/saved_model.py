"""TensorFlow's SavedModel, for servers."""

import dataclasses

from keras_vit.export import check, prepare


def export_saved_model(model, path, *, images=None, overwrite=False):
    """Writes a SavedModel that takes raw pixels, runs it and compares it with the model, both in float32.

    Args:
        model: A Keras model from pixels to logits, under any precision policy; written in float32.
        path: Folder to write; must not exist.
        images: Pixels to compare on, `(batch, height, width, channels)`, 0..255; random ones if `None`.
        overwrite: Whether to replace what is at `path`.

    Returns:
        A `Report`.

    Raises:
        FileExistsError: If `path` exists and `overwrite` is false.
        RuntimeError: If the backend is not TensorFlow, or the written model gives other logits; nothing is kept then.
    """
    prepare.need_tensorflow_backend("A SavedModel")
    model, images = prepare.float32(model), check.sample(model, images)
    with prepare.destination(path, overwrite) as temporary:
        write(model, temporary, batch_size=None)
        report = check.report(temporary, model, images, *check.saved_model(temporary))
    return dataclasses.replace(report, path=str(path))


def write(model, path, batch_size):
    """Writes a SavedModel with one signature, `serve`, from `images` to `logits`."""
    import keras
    import tensorflow as tf

    spec = tf.TensorSpec((batch_size, *model.input_shape[1:]), tf.float32, name="images")
    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", lambda images: {"logits": model(images, training=False)}, input_signature=[spec])
    archive.write_out(str(path), verbose=False)
