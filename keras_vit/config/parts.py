"""The parts of a recipe: all options with their defaults and ranges."""

from dataclasses import dataclass
from typing import Any, Literal

from keras_vit.config.cropping import Cropping
from keras_vit.tasks import Classify
from keras_vit.tasks.base import Task
from keras_vit.utils import checks
from keras_vit.utils.checked import Checked, number


@dataclass(frozen=True, repr=False)
class Data(Cropping):
    """The source of the images, their splits and their size.

    `source` is `"digits"` (scikit-learn's, no network), `"tfds:NAME"` (tensorflow-datasets) or `"folder:PATH"`: class
    folders; `images` and `masks`, or `annotations`; COCO's `annotations.json` or `panoptic.json`; YOLO's `data.yaml`;
    any images, without targets. Of `Translate` it is `"table:PATH"`, a file with two columns of texts. A split is a
    name, or a part of it in whole percents: `"train[:90%]"`; tensorflow-datasets also accepts its other forms.
    """

    source: str = "digits"
    train: str = "all[:70%]"
    validation: str = "all[70%:80%]"
    test: str = "all[80%:]"
    batch_size: int = number(128, low=1)
    columns: dict[str, Any] | None = None  # columns of a folder's table; see `keras_vit.data.readers.table`
    limit: int | None = number(None, low=1)  # largest number of images in each split
    fold: tuple[int, int] | None = None  # (2, 5): the second of five parts of train and validation is for validation
    bad_images: Literal["raise", "skip"] = "raise"  # for unreadable files: an error, or skip and list them
    # Of pictures of any bands and depth, see `docs/bits_and_bands.md`.
    bands: tuple[int | str, ...] | None = None  # numbers from 1, or names
    pages: Literal["bands"] | None = None  # what the pages of a TIFF are
    value_range: tuple[float, float] | tuple[tuple[float, float], ...] | Literal["minmax", "percentiles"] | None = None
    no_data: float | Literal["nan", "file"] | None = None  # the value of pixels that are unknown
    # Before a center crop: see `keras_vit.data.augment.cuts`.
    resize: int | tuple[int, int] | Literal["window", "aspect", "pad"] | None = number(None, low=1)
    crop_offset: Literal["round", "floor"] = "round"  # rounding of half pixels: as in timm, or in transformers
    method: Literal["bilinear", "bicubic", "area"] = "bilinear"  # interpolation at evaluation
    antialias: bool = True  # for all resizing, "inception" crops included; off in Google's code


@dataclass(frozen=True, repr=False)
class Augment(Checked):
    """Random augmentation of training images, in the order below. 0 turns an option off."""

    crop: Literal["inception", "window", "padded"] | None = None  # see `keras_vit.data.augment.cuts`
    crop_area: float = number(0.05, low=1e-3, most=1)  # smallest share of the area in an "inception" crop
    crop_shrink: float = number(1.0, low=1)  # largest factor by which a "window" crop is shrunk
    crop_padding: int = number(4)  # black pixels added on each side before a "padded" crop
    rotation: float = number(0.0, below=180)  # largest angle, in degrees
    scale: float = number(0.0, below=1)  # largest relative change of size
    shear: float = number(0.0, below=1)  # largest horizontal shift of a row, relative to its distance from the center
    translation: float = number(0.0, below=1)  # largest shift, as a share of the side
    flip: bool = False  # left to right, with probability 1/2
    jitter: float = number(0.0, below=1)  # largest relative change of brightness, of contrast and of saturation
    randaugment: int = number(0)  # operations per image; see `keras_vit.data.augment.randaugment`
    magnitude: float = number(10.0, most=30)  # of RandAugment, on the paper's scale; 5 leaves colors unchanged
    erase: float = number(0.0, below=1)  # probability of one black rectangle of 2 to 20 % of the area
    layers: tuple[Any, ...] = ()  # Keras preprocessing layers, applied in turn to a batch
    mixup: float = number(0.0)  # alpha of Beta(alpha, alpha), from which blending weights are drawn
    cutmix: float = number(0.0)  # alpha of CutMix; with mixup too, one of the two is drawn for each batch

    @classmethod
    def level(cls, name, **more):
        """Returns an `Augment` of a published strength, `"none"` to `"strong2"`, and further options.

        Steiner et al. 2022 (arXiv:2106.10270), section 3.4, with the numbers of big_vision.
        """
        checks.one_of("level", name, tuple(LEVELS))
        randaugment, magnitude, mixup = LEVELS[name]
        return cls(**{"randaugment": randaugment, "magnitude": magnitude, "mixup": mixup, **more})


LEVELS = {
    # name: RandAugment's operations and magnitude, MixUp's alpha
    "none": (0, 0.0, 0.0),
    "light1": (2, 0.0, 0.0),
    "light2": (2, 10.0, 0.2),
    "medium1": (2, 15.0, 0.2),
    "medium2": (2, 15.0, 0.5),
    "strong1": (2, 20.0, 0.5),
    "strong2": (2, 20.0, 0.8),
}


@dataclass(frozen=True, repr=False)
class Optim(Checked):
    """Optimizer, schedule and fine-tuning. Weight decay applies to kernels only."""

    optimizer: Literal["adamw", "sgd", "muon"] = "adamw"
    epochs: int = number(50, low=1)
    patience: int | None = number(None, low=1)  # epochs without a better score after which the run ends
    learning_rate: float = number(1e-3)
    weight_decay: float = number(0.05)  # multiplied by the learning rate, as in Keras and PyTorch
    momentum: float = number(0.9, below=1)  # of SGD
    schedule: Literal["cosine", "linear", "constant"] = "cosine"  # after the warm-up; "cosine" and "linear" end at 0
    warmup_epochs: float = number(1.0)
    clip_norm: float | None = number(1.0)  # largest global norm of the gradients
    accumulate: int = number(1, low=1)  # batches whose gradients are averaged for one update
    ema: float | None = number(None, below=1)  # momentum of the EMA weights, which are evaluated and saved
    layer_decay: float | None = number(None, low=1e-3, most=1)  # ratio of learning rates of a block and the next one
    freeze: int | Literal["all"] | None = None  # number of blocks to freeze, from the first; "all": train only the head
    lora: int | None = number(None, low=1)  # rank of LoRA on attention; only LoRA and the head are trained
    remat: bool = False  # gradient checkpointing of blocks: less memory, more time
    xla: bool = True  # compile the step with XLA; on a CPU, convolutions of large images are faster without


@dataclass(frozen=True, repr=False)
class Weights(Checked):
    """Trained weights that ship with the package, in `saved_models`."""

    file: str
    sha256: str


@dataclass(frozen=True, repr=False)
class Reached(Checked):
    """The result of a training run: accuracy on the test split, or other scores by name."""

    test_accuracy: float | None = number(None, most=1)
    scores: tuple[tuple[str, float], ...] = ()  # such as (("mean IoU on val", 0.92),)
    minutes: float = number(0.0)
    device: str = ""
    seeds: tuple[int, ...] = (0,)
    commit: str = ""
    note: str = ""

    @property
    def headline(self):
        """The name of the first score, and its value."""
        return ("test accuracy", self.test_accuracy) if self.test_accuracy is not None else self.scores[0]


@dataclass(frozen=True, repr=False)
class Recipe(Checked):
    """A whole experiment: task, data, model, augmentation and optimization.

    `model` has arguments of `keras_vit.vit`, and `weights` to start from, as in `Task.vit`. `task` defines targets,
    head, loss and scores; see `keras_vit.Task`.
    """

    name: str
    model: dict[str, Any]
    task: Task = Classify()
    data: Data = Data()
    augment: Augment = Augment()
    optim: Optim = Optim()
    weights: Weights | None = None
    reached: Reached | None = None
    distribute: Literal["data", "model"] | None = None  # what is divided among devices: batches, or batches and weights
    model_parallel: int = number(1, low=1)  # devices per replica of the model, for "model"
    seed: int = number(0, below=2**31)
