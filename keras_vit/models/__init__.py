"""`vit`, and what can be said of a model."""
