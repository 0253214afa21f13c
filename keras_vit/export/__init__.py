"""Models as SavedModel, TFLite and ONNX. Each file is run and compared before it is called done."""

from keras_vit.export.check import Report
from keras_vit.export.compare import compare_layers
from keras_vit.export.onnx import export_onnx
from keras_vit.export.saved_model import export_saved_model
from keras_vit.export.tflite import export_tflite

__all__ = ["Report", "compare_layers", "export_onnx", "export_saved_model", "export_tflite"]
