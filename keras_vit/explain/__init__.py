"""What a model attends to, knows and gets wrong, as arrays. `keras_vit.plots` draws them."""

from keras_vit.explain.answers import Calibration as Calibration
from keras_vit.explain.answers import calibration as calibration
from keras_vit.explain.answers import per_class as per_class
from keras_vit.explain.answers import worst as worst
from keras_vit.explain.attention import attention_distance as attention_distance
from keras_vit.explain.attention import attention_from as attention_from
from keras_vit.explain.attention import attention_maps as attention_maps
from keras_vit.explain.attention import attention_rollout as attention_rollout
from keras_vit.explain.boxes import attention_of_boxes as attention_of_boxes
from keras_vit.explain.embedding import embed as embed
from keras_vit.explain.embedding import nearest as nearest
from keras_vit.explain.embedding import project as project
from keras_vit.explain.features import features as features
from keras_vit.explain.queries import attention_of_queries as attention_of_queries
from keras_vit.explain.relevance import attention_relevance as attention_relevance
from keras_vit.explain.stem_maps import grad_cam as grad_cam
from keras_vit.explain.texts import attention_of_answer as attention_of_answer
from keras_vit.explain.texts import attention_of_text as attention_of_text
from keras_vit.explain.texts import attention_of_words as attention_of_words
from keras_vit.explain.tokens import token_norms as token_norms
from keras_vit.explain.tokens import token_similarity as token_similarity
from keras_vit.explain.weights import patch_filters as patch_filters
from keras_vit.explain.weights import position_similarity as position_similarity
from keras_vit.explain.word_maps import attention_over_source as attention_over_source
