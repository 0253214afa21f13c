"""Scores of restored images, by job."""

import numpy as np

from keras_vit.tasks.tally import Tally


class JobTally(Tally):
    """PSNR and SSIM of all images, and of those of each job, such as `"psnr x2"`.

    Args:
        tallies: An `ImageTally` by the name of each job, in the order of their indices.
    """

    def __init__(self, tallies):
        super().__init__()
        self.tallies = tallies

    def add(self, examples, outputs):
        """Counts a batch, and returns the PSNR of each image in dB, `(batch,)`.

        Args:
            examples: As in `ImageTally.add`, the degraded images at the size of the originals, and `"labels"`, the
                index of the job of each image, `(batch,)`.
            outputs: As in `ImageTally.add`.
        """
        scores, names = [], list(self.tallies)
        for i, label in enumerate(examples["labels"]):
            one = {name: examples[name][i : i + 1] for name in ("images", "originals")}
            scores.append(self.tallies[names[label]].add(one, outputs[i : i + 1]))
        return np.concatenate(scores)

    def result(self):
        by_job = {job: tally.result() for job, tally in self.tallies.items()}
        values = {}
        for tally in self.tallies.values():
            for score, found in tally.values.items():
                values.setdefault(score, []).extend(found)
        whole = {score: float(np.mean(found)) for score, found in values.items()}
        return whole | {f"{score} {job}": value for job, scores in by_job.items() for score, value in scores.items()}
