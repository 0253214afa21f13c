"""Depth estimation: the distance of each pixel."""
