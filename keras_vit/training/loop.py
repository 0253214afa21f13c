"""Keras's training loop on a recipe's batches, saved and resumed at any step."""

from keras_vit.training import ema, history, progress, stopping
from keras_vit.training.compiling import compile_run
from keras_vit.training.keep import KeepBest, KeepState
from keras_vit.training.pace import Pace


def run_epochs(run, verbose="auto", save_steps=None, extra=()):
    """Trains a run to its last epoch, from the newest training state in its directory.

    Args:
        run: A `Run`. Its model was built, and this is called, in the scope of `run.place`. The directory gets training
            states, `best.keras` and `history.csv`.
        verbose: `"auto"` for one progress line, `1` or `2` for Keras's bars or lines, `0` for nothing.
        save_steps: Steps between training states within an epoch; `None` for every ten minutes.
        extra: More callbacks.

    Returns:
        The history: a dictionary from names to lists with one value per epoch, epochs of earlier calls included.

    Raises:
        RuntimeError: When the loss becomes NaN or infinite.
        OSError: When the training state cannot be written.
        keras_vit.training.stopping.Stopped: A `KeyboardInterrupt`, after Ctrl-C or SIGTERM, once the state is saved.
    """
    epochs = run.recipe.optim.epochs
    learner = compile_run(run)
    validation = run.validation_batches()
    keep = KeepState(run, learner, save_steps)
    keep.restore()
    if run.epoch >= epochs and verbose and run.place.writes:
        print(
            f"{run.folder}: already finished, all {epochs} epochs. To train longer, start a new run from its "
            f"weights: model.weights={run.folder} and another directory."
        )
    with stopping.signals() as asked, progress.shown(run, verbose) as (shown, keras_verbose):
        callbacks = [
            *ema.callbacks(run.recipe.optim),
            Pace(run),
            *shown,
            stopping.StopOnNaN(run),
            KeepBest(run, learner),
            keep,
            stopping.StopOnSignal(run, keep, asked),
            *extra,
        ]
        while run.epoch < epochs:
            learner.fit(
                run.training_batches(),
                validation_data=validation,
                initial_epoch=run.epoch,
                epochs=run.epoch + 1 if run.step else epochs,  # the rest of an epoch by itself: it has fewer steps
                steps_per_epoch=run.steps - run.step,
                shuffle=False,  # the pipeline shuffles
                callbacks=callbacks,
                verbose=keras_verbose,
            )
            keep.restore()  # Keras's `fit` ends with the EMA weights in place
    learner.optimizer.finalize_variable_values(run.model.trainable_variables)  # the EMA weights, if there are any
    return history.read(run.folder)
