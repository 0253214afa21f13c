"""Trained models on the Hugging Face hub."""

from keras_vit.hub.push import push_to_hub

__all__ = ["push_to_hub"]
