"""Learning without labels: masked autoencoders and self-distillation."""
