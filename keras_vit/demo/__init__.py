"""A local web page: upload or draw an image, and see a trained model's prediction and attention."""

from keras_vit.demo.serving import launch

__all__ = ["launch"]
