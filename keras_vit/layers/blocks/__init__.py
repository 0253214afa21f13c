"""Transformer blocks and their sublayers."""
