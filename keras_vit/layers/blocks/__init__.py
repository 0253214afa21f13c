"""What a block is made of, and the blocks."""
