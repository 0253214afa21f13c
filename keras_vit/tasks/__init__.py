"""What models are trained for, one folder a task."""

from keras_vit.tasks.answer.answer import Answer as Answer
from keras_vit.tasks.caption.caption import Caption as Caption
from keras_vit.tasks.caption.caption_clips import CaptionClips as CaptionClips
from keras_vit.tasks.classify.classify import Classify as Classify
from keras_vit.tasks.classify.classify_clips import ClassifyClips as ClassifyClips
from keras_vit.tasks.compress.compress import Compress as Compress
from keras_vit.tasks.contrast.contrast import Contrast as Contrast
from keras_vit.tasks.contrast.contrast_clips import ContrastClips as ContrastClips
from keras_vit.tasks.depth.depth import Depth as Depth
from keras_vit.tasks.detect.detect import Detect as Detect
from keras_vit.tasks.detect.detect_clips import DetectClips as DetectClips
from keras_vit.tasks.generate.generate import Generate as Generate
from keras_vit.tasks.pretrain.pretrain import Pretrain as Pretrain
from keras_vit.tasks.pretrain.pretrain_clips import PretrainClips as PretrainClips
from keras_vit.tasks.regress.regress import Regress as Regress
from keras_vit.tasks.restore.restore import Restore as Restore
from keras_vit.tasks.segment.segment import Segment as Segment
from keras_vit.tasks.translate.translate import Translate as Translate
