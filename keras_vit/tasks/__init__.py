"""What models are trained for, one file a task."""
