"""Boxes of objects."""
