"""What a recipe is: its parts, with every option, its default and its range."""

from dataclasses import dataclass
from typing import Any, Literal

from keras_vit import checks
from keras_vit.config.checked import Checked, number


@dataclass(frozen=True, repr=False)
class Data(Checked):
    """Where images come from, and how they are brought to the model's size.

    `source` is `"digits"` (scikit-learn's, no network), `"tfds:NAME"` (tensorflow-datasets) or
    `"folder:PATH"` (class folders). A split is a name and, if it is cut, whole percents: `"train[:90%]"`;
    tensorflow-datasets takes all that it knows.
    """

    source: str = "digits"
    train: str = "all[:70%]"
    validation: str = "all[70%:80%]"
    test: str = "all[80%:]"
    batch_size: int = number(128, low=1)
    limit: int | None = number(None, low=1)  # at most so many images of each split
    bad_images: Literal["raise", "skip"] = "raise"  # unreadable files of a folder: an error, or left out and listed
    resize: int | None = number(None, low=1)  # at evaluation the shorter side becomes so many pixels, and the centre
    # is cut out; None resizes the whole image
    method: Literal["bilinear", "bicubic", "area"] = "bilinear"  # of that resizing
    antialias: bool = True  # of all resizing, an "inception" crop by averaging areas; Google's own code has it off


@dataclass(frozen=True, repr=False)
class Augment(Checked):
    """Random changes to training images, drawn anew for each; 0 turns one off. They come in the order below."""

    crop: Literal["inception", "resized", "padded"] | None = None  # see `keras_vit.data.crops`
    crop_area: float = number(0.05, low=1e-3, most=1)  # smallest share of the area that an "inception" crop keeps
    crop_resize: int | None = number(None, low=1)  # shorter side, in pixels, out of which a "resized" crop is cut
    crop_padding: int = number(4)  # black pixels on each side, out of which a "padded" crop is cut
    rotation: float = number(0.0, below=180)  # largest angle, degrees
    scale: float = number(0.0, below=1)  # largest relative change of size
    shear: float = number(0.0, below=1)  # largest horizontal shift of a row, relative to its distance from the centre
    translation: float = number(0.0, below=1)  # largest shift, as a share of the side
    flip: bool = False  # left to right, half of the images
    jitter: float = number(0.0, below=1)  # largest relative change of brightness, of contrast and of saturation
    randaugment: int = number(0)  # how many operations, drawn from sixteen; see `keras_vit.data.randaugment`
    magnitude: float = number(10.0, most=30)  # of those, on the paper's scale
    erase: float = number(0.0, below=1)  # probability of one black rectangle of 2 to 20 % of the area
    layers: tuple[Any, ...] = ()  # Keras preprocessing layers, called one after the other on a batch
    mixup: float = number(0.0)  # of Beta(mixup, mixup), by which an image is blended with another of its batch
    cutmix: float = number(0.0)  # of Beta(cutmix, cutmix), by which a box is taken over from another; both: either

    @classmethod
    def level(cls, name, **more):
        """Returns an augmentation of a published strength, `"none"` to `"strong2"`, with more settings beside.

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
    """How the weights are changed: by AdamW or SGD, with decay on kernels only."""

    optimizer: Literal["adamw", "sgd"] = "adamw"
    epochs: int = number(50, low=1)
    learning_rate: float = number(1e-3)
    weight_decay: float = number(0.05)  # as in Keras and PyTorch: multiplied by the learning rate
    momentum: float = number(0.9, below=1)  # of SGD
    schedule: Literal["cosine", "linear", "rsqrt", "constant"] = "cosine"  # after the warm-up; the first two end at 0
    warmup_epochs: float = number(1.0)
    rsqrt_epochs: float = number(1.0)  # timescale of "rsqrt": rate / sqrt(1 + epochs since the warm-up / timescale)
    cooldown_epochs: float = number(0.0)  # at the end, linearly to 0; for "rsqrt" and "constant"
    clip_norm: float | None = number(1.0)  # of the whole gradient
    accumulate: int = number(1, low=1)  # batches whose gradients are averaged to one change of the weights
    ema: float | None = number(None, below=1)  # momentum of a moving average of the weights, which is what is kept
    layer_decay: float | None = number(None, low=1e-3, most=1)  # learning rate of a block, relative to the next one's
    loss: Literal["softmax", "sigmoid"] = "softmax"
    head_bias: float | None = None  # that the head starts from; -log(classes) suits a sigmoid
    label_smoothing: float = number(0.0, below=1)
    class_weights: bool = False  # whether a class counts the more, the rarer it is
    freeze: int | Literal["all"] | None = None  # stem, patches and so many blocks stay; "all" trains the head alone
    lora: int | None = number(None, low=1)  # rank of low-rank updates of attention, which alone are trained, and head
    remat: bool = False  # whether blocks are computed again in the backward pass, to save their memory
    distill: Literal["soft", "hard"] | None = None  # how a teacher's logits count; see `keras_vit.distillation`
    teacher: str | None = None  # checkpoint, published name or `.keras` file
    distill_weight: float = number(0.5, most=1)  # share of the teacher in the loss
    temperature: float = number(3.0, low=1e-3)  # of soft distillation


@dataclass(frozen=True, repr=False)
class Weights(Checked):
    """Trained weights that ship with the package, in `saved_models`."""

    file: str
    sha256: str


@dataclass(frozen=True, repr=False)
class Reached(Checked):
    """What a real run of the recipe reached."""

    test_accuracy: float = number(0.0, most=1)
    minutes: float = number(0.0)
    device: str = ""
    seeds: tuple[int, ...] = (0,)
    commit: str = ""
    note: str = ""


@dataclass(frozen=True, repr=False)
class Recipe(Checked):
    """A whole experiment. `model` holds the arguments of `keras_vit.vit`."""

    name: str
    model: dict[str, Any]
    data: Data = Data()
    augment: Augment = Augment()
    optim: Optim = Optim()
    weights: Weights | None = None
    reached: Reached | None = None
    metrics: tuple[Literal["accuracy", "balanced_accuracy", "partial_auc"], ...] = ("accuracy",)  # of `evaluate`
    distribute: Literal["data", "model"] | None = None  # over all devices: batches, or batches and weights
    model_parallel: int = number(1, low=1)  # devices that share one copy of the weights, for "model"
    seed: int = number(0, below=2**31)
