"""What can be done with the features of a frozen model: embed folders, search, classify, find what is abnormal."""

from keras_vit.frozen.anomaly import AnomalyDetector
from keras_vit.frozen.embed import embed_folder
from keras_vit.frozen.embedder import Embedder
from keras_vit.frozen.index import Index, count, load_index
from keras_vit.frozen.neighbors import knn, nearest
from keras_vit.frozen.pca import pca_image
from keras_vit.frozen.probe import probe
from keras_vit.frozen.transferring import transfer

__all__ = [
    "AnomalyDetector",
    "Embedder",
    "Index",
    "count",
    "embed_folder",
    "knn",
    "load_index",
    "nearest",
    "pca_image",
    "probe",
    "transfer",
]
