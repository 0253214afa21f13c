"""Models as SavedModel, TFLite, ONNX and OpenVINO. Each file is run and compared before it is called done."""

from keras_vit.export.comparison import Report
from keras_vit.export.decoder_step import export_writer
from keras_vit.export.layer_differences import compare_layers
from keras_vit.export.onnx import export_onnx
from keras_vit.export.openvino import export_openvino
from keras_vit.export.predictor import Predictor, predictor
from keras_vit.export.saved_model import export_saved_model
from keras_vit.export.tflite import export_tflite

__all__ = [
    "Predictor",
    "Report",
    "compare_layers",
    "export_onnx",
    "export_openvino",
    "export_saved_model",
    "export_tflite",
    "export_writer",
    "predictor",
]
