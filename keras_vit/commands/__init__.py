"""The commands of python -m keras_vit. Each imports what it needs when it runs: help needs no Keras."""
