"""The rules of instance segmentation by a detector with a mask for each box."""

import numpy as np

from keras_vit.models.box_outputs import EDGES
from keras_vit.models.segment_outputs import boxed_map
from keras_vit.tasks import dense
from keras_vit.tasks.detect import box_heads
from keras_vit.tasks.measured import Measured
from keras_vit.tasks.segment.instance_learner import InstanceLearner
from keras_vit.tasks.segment.instance_loss import InstanceLoss
from keras_vit.tasks.segment.instance_tally import InstanceTally
from keras_vit.tasks.segment.objects import MEASURED, Objects

SMALLER = 4  # how many times smaller than the image masks are, without weights that say it


class BoxedObjects(Objects):
    """The rules of objects with a box and a mask each: `Objects` with the head `"deformable"`."""

    gives = "instances"

    def model(self, arguments):
        task = self.task
        encoder = dense.encoder(arguments, len(task.classes), "segmenter")
        model = box_heads.deformable_model(task, encoder, arguments, task.head_options["queries"], SMALLER)
        return dense.finished(encoder, model.output, arguments, task.classes, "segmenter")

    def fitted(self, model):
        return InstanceLearner(model)

    def compiled(self, source):
        return {"loss": InstanceLoss(len(self.task.classes)), "weighted_metrics": []}

    def callbacks(self, run):
        return [Measured(run, run.task.of_model(run.model).tally, ("mask_ap", "mask_ap50"), most=MEASURED)]

    def tally(self):
        return InstanceTally(self.task.classes, self.task.mask_size or (1, 1), self.score, boxed=True)

    def shares(self, output):
        return np.asarray(output)[:, EDGES : EDGES + len(self.task.classes)]

    def segments(self, output, size=None):
        """Returns the segments of one image at a size, by default that of the masks; see `boxed_map`."""
        count = len(self.task.classes)
        cells = self.cells(output.shape[1] - EDGES - count)
        photo = cells if size is None else tuple(size)
        return boxed_map(output, count, photo, self.score, mask_size=cells)
