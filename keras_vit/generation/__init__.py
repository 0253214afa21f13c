"""Texts and images that a model makes step by step: decoding, search, sampling."""
