"""What a recipe is, how it is changed, and how it is written down."""

from keras_vit.config.changes import names as names
from keras_vit.config.changes import override as override
from keras_vit.config.changes import parse as parse
from keras_vit.config.consistency import check_recipe as check_recipe
from keras_vit.config.parts import LEVELS as LEVELS
from keras_vit.config.parts import Augment as Augment
from keras_vit.config.parts import Data as Data
from keras_vit.config.parts import Optim as Optim
from keras_vit.config.parts import Reached as Reached
from keras_vit.config.parts import Recipe as Recipe
from keras_vit.config.parts import Weights as Weights
from keras_vit.config.plain import from_dict as from_dict
from keras_vit.config.plain import to_dict as to_dict
from keras_vit.config.plain import without as without
from keras_vit.tasks import Answer as Answer
from keras_vit.tasks import Caption as Caption
from keras_vit.tasks import Classify as Classify
from keras_vit.tasks import Contrast as Contrast
from keras_vit.tasks import Depth as Depth
from keras_vit.tasks import Detect as Detect
from keras_vit.tasks import Pretrain as Pretrain
from keras_vit.tasks import Regress as Regress
from keras_vit.tasks import Restore as Restore
from keras_vit.tasks import Segment as Segment
from keras_vit.tasks.base import Task as Task
