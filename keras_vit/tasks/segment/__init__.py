"""Classes of pixels."""
