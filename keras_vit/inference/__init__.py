"""What a published model is asked without training: depth, poses, classes named by texts."""
