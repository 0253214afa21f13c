"""Crops of large pictures: where they are drawn, how they are read, and what becomes of their targets."""
