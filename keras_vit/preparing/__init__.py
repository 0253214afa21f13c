"""What an image becomes before a model sees it: sizes, crops, aspect, pixel range, frames."""
