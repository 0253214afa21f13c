"""Opens files of weights: names, shapes and arrays."""
