"""What is wrong with a data set: copies, leaks between splits, labels that are likely wrong, outliers.

`inspect` has the steps. Equal pictures are found in `exact`, nearly equal ones in `near`: by `hashes` of thumbnails
from `pixels`, and by the `graph` of an index's vectors.
"""

from keras_vit.inspecting.inspect import inspect_index

__all__ = ["inspect_index"]
