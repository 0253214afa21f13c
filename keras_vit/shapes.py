"""Models that have shapes but no memory."""

from concurrent.futures import ThreadPoolExecutor

import keras


def shapes_only(function):
    """Returns `function()`, in which the models that are built have shapes but no memory.

    In a thread of its own: Keras lists such variables, a list a thread, and would fill them all at the next chance.
    """

    def scoped():
        with keras.StatelessScope(initialize_variables=False):
            return function()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(scoped).result()
