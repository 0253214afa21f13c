"""Image captioning and text recognition."""
