"""How images are changed while they are trained on, and their targets with them."""
