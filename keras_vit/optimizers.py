"""AdamW, SGD and Muon with layer-wise learning-rate decay, and the schedules of recipes, for a loop of your own."""

from keras_vit.training.optimizers import SGD as SGD
from keras_vit.training.optimizers import AdamW as AdamW
from keras_vit.training.optimizers import Muon as Muon
from keras_vit.training.optimizers import Schedule as Schedule
from keras_vit.training.optimizers import layer_factors as layer_factors
