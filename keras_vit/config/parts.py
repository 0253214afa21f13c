"""What a recipe is: its parts, with every option, its default and its range."""

from dataclasses import dataclass
from typing import Any, Literal

from keras_vit.tasks import Classify
from keras_vit.tasks.base import Task
from keras_vit.utils import checks
from keras_vit.utils.checked import Checked, number


@dataclass(frozen=True, repr=False)
class Data(Checked):
    """Where images come from, and how they are resized.

    `source` is `"digits"` (scikit-learn's, no network), `"tfds:NAME"` (tensorflow-datasets) or `"folder:PATH"`: class
    folders; `images` and `masks`, or `annotations`; YOLO's `data.yaml`; any images, without targets. A split is a name,
    with whole percents for a part of it: `"train[:90%]"`; tensorflow-datasets also accepts its other forms.
    """

    source: str = "digits"
    train: str = "all[:70%]"
    validation: str = "all[70%:80%]"
    test: str = "all[80%:]"
    batch_size: int = number(128, low=1)
    columns: dict[str, Any] | None = None  # of a folder's table: see `keras_vit.data.readers.table`
    limit: int | None = number(None, low=1)  # images of each split, at most
    fold: tuple[int, int] | None = None  # (2, 5): train on four of five parts of train and validation, not the second
    bad_images: Literal["raise", "skip"] = "raise"  # on unreadable files: an error, or skip and list them
    # Before a center crop: see `keras_vit.data.augment.cuts`.
    resize: int | tuple[int, int] | Literal["window", "aspect"] | None = number(None, low=1)
    crop_offset: Literal["round", "floor"] = "round"  # of half an odd rest: timm's rounding, or transformers'
    method: Literal["bilinear", "bicubic", "area"] = "bilinear"  # of resizing at evaluation
    antialias: bool = True  # in all resizing, "inception" crops included; Google's own code has it off


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
    magnitude: float = number(10.0, most=30)  # of RandAugment, on the paper's scale; for colors 5 is no change
    erase: float = number(0.0, below=1)  # probability of one black rectangle of 2 to 20 % of the area
    layers: tuple[Any, ...] = ()  # Keras preprocessing layers, called one after the other on a batch
    mixup: float = number(0.0)  # alpha of Beta(alpha, alpha), the share of each of two blended images
    cutmix: float = number(0.0)  # alpha of CutMix; with mixup too, each batch draws one of them

    @classmethod
    def level(cls, name, **more):
        """Returns an augmentation of a published strength, `"none"` to `"strong2"`, with more options.

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
    weight_decay: float = number(0.05)  # times the learning rate, as in Keras and PyTorch
    momentum: float = number(0.9, below=1)  # of SGD
    schedule: Literal["cosine", "linear", "constant"] = "cosine"  # after the warm-up; the first two end at 0
    warmup_epochs: float = number(1.0)
    clip_norm: float | None = number(1.0)  # of all gradients together
    accumulate: int = number(1, low=1)  # batches whose gradients are averaged for one update
    ema: float | None = number(None, below=1)  # momentum of the EMA weights, which are evaluated and saved
    layer_decay: float | None = number(None, low=1e-3, most=1)  # learning rate of a block over that of the next one
    freeze: int | Literal["all"] | None = None  # blocks frozen, with all before them; "all": train the head only
    lora: int | None = number(None, low=1)  # rank of LoRA on attention; trains LoRA and the head only
    remat: bool = False  # gradient checkpointing of blocks: less memory, more time
    xla: bool = True  # compile the step with XLA; on a CPU, convolutions of large images are faster without


@dataclass(frozen=True, repr=False)
class Weights(Checked):
    """Trained weights that ship with the package, in `saved_models`."""

    file: str
    sha256: str


@dataclass(frozen=True, repr=False)
class Reached(Checked):
    """What a run of the recipe reached: accuracy on the test split, or other scores by name."""

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

    `model` is the arguments of `keras_vit.vit`, and `weights` to start from, as `Task.vit` takes them. `task` says what
    the model is trained for; see `keras_vit.Task`.
    """

    name: str
    model: dict[str, Any]
    task: Task = Classify()
    data: Data = Data()
    augment: Augment = Augment()
    optim: Optim = Optim()
    weights: Weights | None = None
    reached: Reached | None = None
    distribute: Literal["data", "model"] | None = None  # over all devices: batches, or batches and weights
    model_parallel: int = number(1, low=1)  # devices per replica of the model, for "model"
    seed: int = number(0, below=2**31)
