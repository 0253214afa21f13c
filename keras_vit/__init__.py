"""Vision Transformers for Keras 3."""

from keras_vit.checkpoints import from_checkpoint as from_checkpoint
from keras_vit.checkpoints import list_checkpoints as list_checkpoints
from keras_vit.checkpoints import load_weights as load_weights
from keras_vit.checkpoints import save_checkpoint as save_checkpoint
from keras_vit.checks import check_data as check_data
from keras_vit.config import Augment as Augment
from keras_vit.config import Data as Data
from keras_vit.config import Optim as Optim
from keras_vit.config import Recipe as Recipe
from keras_vit.cookbook import from_recipe as from_recipe
from keras_vit.cookbook import list_recipes as list_recipes
from keras_vit.cookbook import load_recipe as load_recipe
from keras_vit.counting import count_macs as count_macs
from keras_vit.counting import list_variants as list_variants
from keras_vit.explain import attention_maps as attention_maps
from keras_vit.explain import attention_rollout as attention_rollout
from keras_vit.export import export_saved_model as export_saved_model
from keras_vit.export import export_tflite as export_tflite
from keras_vit.layers import MLP as MLP
from keras_vit.layers import ConvStem as ConvStem
from keras_vit.layers import LayerScale as LayerScale
from keras_vit.layers import MultiHeadSelfAttention as MultiHeadSelfAttention
from keras_vit.layers import PatchEncoder as PatchEncoder
from keras_vit.layers import Patches as Patches
from keras_vit.layers import Rescale as Rescale
from keras_vit.layers import ResNetStem as ResNetStem
from keras_vit.layers import StandardizedConv2D as StandardizedConv2D
from keras_vit.layers import StochasticDepth as StochasticDepth
from keras_vit.layers import TokenPool as TokenPool
from keras_vit.layers import TransformerBlock as TransformerBlock
from keras_vit.plots import plot_attention as plot_attention
from keras_vit.plots import plot_history as plot_history
from keras_vit.preprocessing import preprocess as preprocess
from keras_vit.pretrained import from_pretrained as from_pretrained
from keras_vit.pretrained import vit as vit
from keras_vit.runs import datasets as datasets
from keras_vit.runs import evaluate as evaluate
from keras_vit.runs import fit as fit
from keras_vit.runs import load_run as load_run
from keras_vit.variants import HYBRIDS as HYBRIDS
from keras_vit.variants import VARIANTS as VARIANTS

__version__ = "0.1.0"
