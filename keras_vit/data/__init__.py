"""Images and targets from tensorflow-datasets, folders, arrays and scikit-learn, as `tf.data` pipelines.

To follow an image from its source to a training step, read `sources`, `pipeline`, and in `augment/` the files `crops`,
`augment` and `mixing`. Behind `sources` are `readers/`, one file for each kind of data, and `memory` (a split that fits
into memory); how a target follows its image is one table, in `targets`.
"""
