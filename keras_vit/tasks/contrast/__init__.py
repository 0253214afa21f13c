"""Images and texts in one space."""
