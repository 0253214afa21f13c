"""Attention, its masks, and what it knows of places."""
