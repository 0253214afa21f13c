"""How far each pixel is."""
