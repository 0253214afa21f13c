"""The rules of segmentation by sentences: the pixels of an image of which a text is true."""

import dataclasses

import numpy as np

from keras_vit.models.inputs import metadata_of
from keras_vit.models.open_segmenter import needed
from keras_vit.tasks.segment import sentence_masks
from keras_vit.tasks.segment.rules import Rules
from keras_vit.tasks.shown import percent
from keras_vit.tasks.texts import OWN, ReadsTexts
from keras_vit.utils.warned import warn

NOT_OF = {"classes": (), "kind": "semantic", "first": 0, "class_weights": False}  # options that must be as they are
STARTED = ("weights", "image_size", "dtype", "head", "name", "channels")  # of a model that has its sizes
UNFIT = {"augment.flip": False, "optim.lora": None, "optim.layer_decay": None}
MOST, FOUND = "highest probability", "area"  # names in an answer
NAMES = ("background", "found")  # of the pixels in a picture


class Described(Rules):
    """The rules of what sentences say: the targets `segmentation_masks` and `texts`. Methods are as those of `Task`.

    Args:
        task: The `Segment`, whose options the rules read.
    """

    inputs = ("images", "texts")
    targets = ("segmentation_masks", "texts")
    best = ("val_mean_iou", "max")
    gives = "label_masks"

    def check_options(self):
        task = self.task
        if task.head_kind != "film":
            raise ValueError(f"Segment(text=True) has the head 'film'. Received: head={task.head!r}")
        wrong = [f"{name}={getattr(task, name)!r}" for name, usual in NOT_OF.items() if getattr(task, name) != usual]
        if wrong:
            raise ValueError(
                "With text=True a sentence says which pixels are meant, with value 1 in its mask: leave classes and "
                f"their options out. Received: {', '.join(wrong)}"
            )
        if task.void in (0, 1):
            raise ValueError(f"Segment.void must not be 0 or 1, which masks of sentences have. Received: {task.void}")
        fixed = [name for name in OWN if name in (task.tower or {})]
        if fixed:
            raise ValueError(f"The task sets the text tower's {fixed[0]}. Received: task.tower={task.tower!r}")

    def check(self, recipe):
        if recipe is None:
            return
        options = {"augment": recipe.augment, "optim": recipe.optim}
        values = {name: getattr(options[name.split(".")[0]], name.split(".")[1]) for name in UNFIT}
        wrong = [f"{name}={value!r}" for name, value in values.items() if value != UNFIT[name]]
        if wrong:
            raise ValueError(
                "With text=True, a flip may change what a sentence says, as of left and right, and LoRA and layer-wise "
                f"rates are of one tower: leave them out. Received: {', '.join(wrong)}"
            )
        started = self._has_both(recipe.model)
        if recipe.optim.freeze == "all" and not started:
            raise ValueError(
                "Frozen towers must have learned before: optim.freeze='all' needs model.weights of both. Received: "
                f"weights={recipe.model.get('weights')!r}, task.tower={self.task.tower!r}"
            )
        other = {name for name, value in recipe.model.items() if value is not None} - set(STARTED)
        if started and other:
            raise ValueError(
                f"Towers of model.weights have their own sizes: `model` may have {', '.join(STARTED[1:4])}. For "
                "weights of an image tower alone, set task.tower, the new text tower. "
                f"Received: {', '.join(f'{name}={recipe.model[name]!r}' for name in sorted(other))}"
            )

    def on(self, source, arguments):
        both = self._has_both(arguments or {})
        task = self.task.as_trained(source, arguments["weights"]) if both else ReadsTexts.on(self.task, source)
        task.check()
        wrong = {value: name for value, name in source.mask_values.items() if value not in (0, 1, task.void, 255)}
        if wrong:
            value, name = min(wrong.items())
            raise ValueError(
                "Masks of sentences must have the values 1, where the sentence is true, 0 elsewhere, and 255 for void"
                f"{'' if task.void in (None, 255) else f', or {task.void}'}. Received: {sorted(wrong)}, such as "
                f"{value} in {name!r}"
            )
        if 1 not in source.mask_values:
            message = (
                "Masks of sentences must have pixels of the value 1, where the sentence is true; 255 is void. "
                f"Received: only {sorted(source.mask_values)}"
            )
            if arguments is not None:
                raise ValueError(message)
            warn(message)  # a split for evaluation
        return task

    def read(self, source, training):
        """Returns the split with ids in place of texts; to train with absent sentences, with marks after them."""
        found = ReadsTexts.read(self.task, source, training)
        if not (training and self.task.absent):
            return found
        from keras_vit.data.augment.absent import marked

        images = source.images if source.files else source.groups
        images = np.arange(len(source)) if images is None else images
        ids = marked(found.targets["texts"], images)
        return dataclasses.replace(found, targets={**found.targets, "texts": ids})

    def prepare(self, examples, seed):
        from keras_vit.data.augment.absent import borrowed, parted

        ids = examples["texts"]
        if ids.shape[-1] == self.task.length:  # in evaluation, and without absent sentences
            return ReadsTexts.prepare(self.task, examples, seed)
        ids, marks = parted(ids)
        examples = ReadsTexts.prepare(self.task, {**examples, "texts": ids}, seed)
        masks = examples["segmentation_masks"]
        texts, masks = borrowed(examples["texts"], masks, marks, self.task.absent, seed)
        return {**examples, "texts": texts, "segmentation_masks": masks}

    def of_model(self, model):
        task = ReadsTexts.of_model(self.task, model)
        return {"words": task.words, "tokens": task.tokens}

    def fits(self, model):
        return model.output_shape[-1] == 1

    def _has_both(self, arguments):
        """Returns whether a model starts from weights of both towers: that of `task.tower` is new."""
        return arguments.get("weights") is not None and self.task.tower is None

    def model(self, arguments):
        from keras_vit.tasks.segment.described_model import built, started

        return (started if self._has_both(arguments) else built)(self.task, arguments)

    def learner(self, model):
        """Returns the model without what no mask depends on, which would have no gradients."""
        return needed(model)

    def compiled(self, source):
        scores = [sentence_masks.MaskIoU(self.task.threshold), sentence_masks.OverallIoU(self.task.threshold)]
        return {"loss": sentence_masks.MaskLoss(self.task.dice), "weighted_metrics": scores}

    def batch(self, examples):
        """Returns the model's inputs, and where each sentence is true, uint8 `(batch, height, width, 1)`."""
        return {name: examples[name] for name in self.inputs}, examples["segmentation_masks"]

    def callbacks(self, run):
        if run.recipe.optim.freeze != "all":  # the embedding of images is no longer that of the tower
            metadata_of(run.model)["prompts"] = "texts"
        return []

    def tally(self):
        return sentence_masks.MaskTally(self.task.threshold)

    def answer(self, output):
        """Returns the share of the pixels that were found, and the highest probability of a pixel, 0..1 each."""
        logits = np.asarray(output, "float64")[..., 0]
        share = np.mean(logits > sentence_masks.logit_of(self.task.threshold))
        return {FOUND: float(share), MOST: float(1 / (1 + np.exp(-logits.max())))}

    def listed(self, output, top):
        return [*self.answer(output).items()][:top]

    def said(self, answer):
        found = f"{percent(answer[FOUND])} of the area" if answer[FOUND] else "nothing"
        return f"{found}, {MOST} {percent(answer[MOST])}" if MOST in answer else found

    def heading(self, output):
        return self.said(self.answer(output))

    def caption(self, output, example):
        text = self.task.text_of(example["texts"])
        return f"{text}: {self.heading(output)}" if text else self.heading(output)

    def legend(self):
        from keras_vit.plots.masks import colors

        return {NAMES[1]: tuple(colors(len(NAMES))[1].tolist())}

    def result(self, output, size):
        """Returns 1 where the sentence is true and 0 elsewhere, uint8 `(rows, columns)` of this `size`."""
        return sentence_masks.found_in(output, size, self.task.threshold)

    def picture(self, image, output, example):
        from keras_vit.plots import masks
        from keras_vit.plots.canvas import side_by_side
        from keras_vit.utils.images import mask_pixels

        drawn = [masks.overlay(image, self.result(output, np.shape(output)[:2]), NAMES)]
        if example is not None and "segmentation_masks" in example:
            drawn.append(masks.overlay(image, mask_pixels(example["segmentation_masks"]), NAMES))
        return side_by_side(drawn)  # prediction, truth
