"""Texts from texts, such as translations."""
