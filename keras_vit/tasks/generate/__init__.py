"""Images from noise."""
