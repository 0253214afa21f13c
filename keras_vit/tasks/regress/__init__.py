"""Numbers for each image."""
