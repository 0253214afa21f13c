"""How many threads are worth starting."""

import os


def cores():
    """Returns the number of processor cores that this process may use: of a machine's, a cluster often grants few."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
