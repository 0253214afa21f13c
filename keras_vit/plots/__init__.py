"""Matplotlib figures of what `keras_vit.explain` and training return.

Each function returns a `matplotlib.figure.Figure`, which a notebook shows and `savefig` writes.
"""

from keras_vit.plots.attention import plot_attention as plot_attention
from keras_vit.plots.attention import plot_distance as plot_distance
from keras_vit.plots.attention import plot_heads as plot_heads
from keras_vit.plots.attention import plot_maps as plot_maps
from keras_vit.plots.attention import plot_patches as plot_patches
from keras_vit.plots.attention import plot_words as plot_words
from keras_vit.plots.attention import plot_worst as plot_worst
from keras_vit.plots.boxes import plot_precision as plot_precision
from keras_vit.plots.clip_figures import plot_clips as plot_clips
from keras_vit.plots.clip_figures import write_animation as write_animation
from keras_vit.plots.embedding import plot_embedding as plot_embedding
from keras_vit.plots.embedding import plot_neighbors as plot_neighbors
from keras_vit.plots.history import plot_history as plot_history
from keras_vit.plots.masks import plot_iou as plot_iou
from keras_vit.plots.masks import plot_masks as plot_masks
from keras_vit.plots.masks import plot_pixels as plot_pixels
from keras_vit.plots.masks import plot_quality as plot_quality
from keras_vit.plots.pca import plot_pca as plot_pca
from keras_vit.plots.pictures import plot_pictures as plot_pictures
from keras_vit.plots.poses import draw_poses as draw_poses
from keras_vit.plots.predictions import plot_calibration as plot_calibration
from keras_vit.plots.predictions import plot_confusion as plot_confusion
from keras_vit.plots.predictions import plot_per_class as plot_per_class
from keras_vit.plots.predictions import plot_roc as plot_roc
from keras_vit.plots.reconstruction import plot_reconstruction as plot_reconstruction
from keras_vit.plots.tokens import plot_depth as plot_depth
from keras_vit.plots.weights import plot_filters as plot_filters
from keras_vit.plots.weights import plot_positions as plot_positions
from keras_vit.plots.word_maps import plot_word_maps as plot_word_maps
