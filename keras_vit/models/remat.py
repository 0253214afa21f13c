"""Gradient checkpointing (rematerialization)."""

import contextlib

import keras

from keras_vit.models.variants import MAX_BLOCKS


def rematerialized(depth: int = MAX_BLOCKS) -> keras.RematScope:
    """Returns the scope in which to build a ViT with gradient checkpointing.

    Each block keeps only its input for the backward pass, and computes the rest again: less memory for a third more
    computation, with the same gradients. Chen et al. 2016 (arXiv:1604.06174).

    Args:
        depth: Number of blocks that are rematerialized, from the first.
    """
    return keras.RematScope(mode="list_of_layers", layer_names=[f"block_{i}" for i in range(depth)])


def scope(optim):
    """Returns the scope for building blocks: with gradient checkpointing if `optim.remat` is set."""
    return rematerialized() if optim.remat else contextlib.nullcontext()
