"""Images and targets from tensorflow-datasets, folders, arrays and scikit-learn, as `tf.data` pipelines.

To follow an image from its source to a training step, read `sources`, `pipeline`, `crops`, `augment` and `mixing`.

Behind `sources` are `memory` (a split that fits into memory), `records` (one that does not), `arrays`, `tfds` and
`folder`, with `mask_folder` and `masks`; behind `crops`, `decoding` and `cuts` (which part of an image is seen); behind
`augment`, `geometry`, `color` and `randaugment`. How a target follows its image is one table, in `targets`.
"""
