"""From pixels to tokens: stems, patches, positions."""
