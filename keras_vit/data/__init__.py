"""Images from tensorflow-datasets, folders, arrays and scikit-learn, as tf.data pipelines."""
