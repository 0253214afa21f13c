"""What is no part of a Vision Transformer, and what every other folder may use."""
