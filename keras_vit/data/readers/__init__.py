"""Where images and targets come from: one file for each kind of source."""
