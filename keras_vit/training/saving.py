"""Writing a trained model."""

import shutil
import zipfile
import zlib

from keras_vit.training import finetuning, rundir
from keras_vit.training.ema import averaged
from keras_vit.utils import files


def save_trained(learner, model, path, writes=True):
    """Writes a model's `.keras` file without the optimizer, compressed; if that fails, `path` is as it was.

    Args:
        learner: The model that is fitted, `model` or the `Distiller` around it; its EMA weights are written.
        model: The model.
        path: Path that ends in `.keras`.
        writes: Whether this process writes the file. Others only contribute their part of the weights.
    """
    with averaged(learner):
        values = finetuning.merged_arrays(model)
    if not writes:
        return
    copy = finetuning.plain_copy(model, values)
    with files.replacing(path) as temporary:
        plain = temporary.with_name("plain.keras")
        copy.save(plain)
        with zipfile.ZipFile(plain) as old, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))


def save_final(run):
    """Writes `model.keras`, and `learner.keras` if its own weights serve the task's `viewer`, where they are not whole.

    With `optim.patience`, `model.keras` is the best model, else that of the last epoch.

    Args:
        run: A `Run`, at its end.

    Returns:
        The model of `model.keras` with all its weights in every process.
    """
    run.task.finish(run)
    best = run.recipe.optim.patience is not None and run.best is not None
    viewed = run.own_variables() and run.task.viewer(run.learner)
    models = {rundir.MODEL: run.model} | ({rundir.LEARNER: run.learner} if viewed else {})
    for name, model in models.items():
        missing = run.place.writes and not _is_whole(run.folder / name)
        if run.place.agree([int(missing)]) == [1]:
            if best and name == rundir.MODEL:
                _copy(run.folder / rundir.BEST, run.folder / name, run.place.writes)
            else:
                save_trained(model, model, run.folder / name, run.place.writes)
    if best:
        run.place.agree([0])  # the file is written
        return rundir.read_model(run.folder / rundir.MODEL)
    if run.place.processes == 1:
        return run.model
    # Its weights may be sharded over the processes.
    return finetuning.plain_copy(run.model, finetuning.merged_arrays(run.model))


def _copy(source, path, writes):
    if writes:
        with files.replacing(path) as temporary:
            shutil.copyfile(files.regular(source), temporary)


def _is_whole(path):
    """Returns whether a file exists with right checksums; raises ValueError if it is no regular file."""
    try:
        with zipfile.ZipFile(files.regular(path)) as archive:
            return archive.testzip() is None
    except (FileNotFoundError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError):
        return False
