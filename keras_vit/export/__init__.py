"""Models as SavedModel and TFLite. Each file is run and compared before it is called done."""

from keras_vit.export.saved_model import export_saved_model
from keras_vit.export.tflite import export_tflite

__all__ = ["export_saved_model", "export_tflite"]
