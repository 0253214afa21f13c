"""Visual question answering."""
