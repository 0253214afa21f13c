"""What is known of a model. It is found once, where a journey begins, and handed on."""

import functools

from keras_vit.models.backbone import TOWERS, has_towers, image_tower
from keras_vit.models.captioner import is_captioner, is_translator
from keras_vit.models.dit import is_dit
from keras_vit.models.inputs import inputs_of, table_of
from keras_vit.models.kinds import kind_of, name_of
from keras_vit.models.map_heads import head_of
from keras_vit.models.metadata import stated_labels, stated_thresholds
from keras_vit.models.open_detector import is_open_detector
from keras_vit.models.open_segmenter import is_open_segmenter
from keras_vit.models.outputs import ends_in_features, num_classes, returns_probabilities
from keras_vit.models.unknown import stated_unknown
from keras_vit.models.whole_autoencoder import is_autoencoder
from keras_vit.preparing.pixel_range import range_of
from keras_vit.preparing.preprocessing import Preparation, evaluation_rule
from keras_vit.utils import checks


class Traits:
    """What is known of a model; each is looked up when it is first asked for, and kept.

    Make it after the last change of the model: what was found before stays.

    Args:
        model: A `keras.Model`.
    """

    def __init__(self, model):
        self.model = model

    @functools.cached_property
    def structure(self):
        """How it is built: one of the names below, or `"plain"`."""
        kinds = {
            "towers": has_towers,
            "captioner": is_captioner,
            "translator": is_translator,
            "open_detector": is_open_detector,
            "open_segmenter": is_open_segmenter,
            "dit": is_dit,
            "autoencoder": is_autoencoder,
        }
        return next((name for name, fits in kinds.items() if fits(self.model)), "plain")

    @functools.cached_property
    def tower(self):
        """The part that sees images: the image tower, or the model itself."""
        return image_tower(self.model)

    @functools.cached_property
    def image_model(self):
        """The part that sees images alone, the image tower of two or the model itself; `None` without one.

        An autoencoder has none: it has no blocks to look into.
        """
        alone = len(self.inputs) == 1 and self.structure != "autoencoder"
        return self.tower if self.structure == "towers" or alone else None

    @functools.cached_property
    def reads_both(self):
        """Whether it is one encoder over words and patches, with a head for answers."""
        return {"words", "tokens", "pool", "head"} <= {layer.name for layer in self.model.layers}

    @functools.cached_property
    def pairs(self):
        """Whether its outputs are of one batch: false of two towers that give logits of all images with all texts."""
        return self.structure != "towers" or getattr(self.model.get_layer(TOWERS[2]), "pairs", True)

    @functools.cached_property
    def inputs(self):
        """What it takes: a dictionary from names, such as `"images"`, to shapes without batch; see `inputs_of`."""
        return inputs_of(self.model)

    @functools.cached_property
    def size(self):
        """`(height, width)` of its images, or of its clips' frames; `()` without."""
        return tuple(self.inputs.get("images", self.inputs.get("clips", ()))[-3:-1])

    @functools.cached_property
    def range(self):
        """The lowest and the highest value of a pixel, or `None` if it is not known; see `range_of`."""
        return range_of(self.model)

    @functools.cached_property
    def rule(self):
        """How an image becomes its input; see `evaluation_rule`."""
        return evaluation_rule(self.model)

    @functools.cached_property
    def preparation(self):
        """The function that makes its input of images, a `Preparation`; ValueError for a model of other inputs."""
        return Preparation(self.model)

    @functools.cached_property
    def words(self):
        """The layer that looks up words, and the number of its rows; see `table_of`."""
        return table_of(self.model)

    @functools.cached_property
    def gives(self):
        """The name of the kind of its output, such as `"classes"`."""
        return name_of(self.model)

    @functools.cached_property
    def kind(self):
        """The `Kind` of its output; ValueError for an unknown one."""
        return kind_of(self.model)

    @functools.cached_property
    def map_head(self):
        """What `with_head` takes to put its head on another encoder, a dictionary; `None` without a head of maps."""
        return head_of(self.model)

    @functools.cached_property
    def features(self):
        """Whether it ends before its head, as one with `num_classes=0`."""
        return ends_in_features(self.model)

    @functools.cached_property
    def shares(self):
        """Whether it returns probabilities."""
        return returns_probabilities(self.model)

    @functools.cached_property
    def classes(self):
        """The number of its classes."""
        return num_classes(self.model)

    @functools.cached_property
    def labels(self):
        """The names of its classes, a tuple; `None` if there are none."""
        return stated_labels(self.model)

    @functools.cached_property
    def thresholds(self):
        """The thresholds of several labels, a list; `None` for other models."""
        return stated_thresholds(self.model)

    @functools.cached_property
    def unknown(self):
        """The rule by which images are of none of its classes, a dictionary; `None` without one."""
        return stated_unknown(self.model)


def traits_of(model, rule, received=None, **must):
    """Returns the `Traits` of a model, where only models of one kind may come in.

    Args:
        model: The caller's model.
        rule: A sentence that says which models may.
        received: What the error shows; the model's name by default.
        **must: The values that its traits must have, such as `structure="towers"`.

    Raises:
        TypeError: For anything but a Keras model.
        ValueError: For a model of another kind.
    """
    checks.model(model)
    about = Traits(model)
    if any(getattr(about, name) != value for name, value in must.items()):
        raise ValueError(f"{rule} Received: {received or model.name!r}")
    return about
