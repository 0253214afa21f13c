"""A page on your own machine: give or draw an image, and see what a trained model answers and what it looks at."""

from keras_vit.demo.serving import launch

__all__ = ["launch"]
