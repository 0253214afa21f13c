"""Texts about images."""
