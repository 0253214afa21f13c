"""From tokens to answers."""
