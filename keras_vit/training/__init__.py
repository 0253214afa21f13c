"""Training a recipe: Keras's loop, optimizers, callbacks, the training state on disk, devices, fine-tuning."""
