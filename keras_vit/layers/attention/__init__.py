"""Attention, attention masks and relative positions."""
