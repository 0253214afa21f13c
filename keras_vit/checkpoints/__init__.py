"""Loads published checkpoints into models, and saves models as checkpoints."""

from keras_vit.checkpoints.load import from_checkpoint, load_weights
from keras_vit.checkpoints.published import list_checkpoints
from keras_vit.checkpoints.save import save_checkpoint

__all__ = ["from_checkpoint", "list_checkpoints", "load_weights", "save_checkpoint"]
