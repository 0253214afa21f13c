"""Learning without labels: masked autoencoders."""
