"""Better images: larger, sharper, less noisy."""
