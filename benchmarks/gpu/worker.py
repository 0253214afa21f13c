"""Pieces in one process: prints what it found of each as a line of JSON, or "late" if too few seconds were left.

python worker.py '[[{"peer": "keras_vit", "variant": "B/16", "image": 224, "training": true, "images": 256}, 45]]' 500

Each piece comes with the number of seconds that must be left to start it.
"""

import gc
import json
import statistics
import sys
import time
import traceback

ROUNDS, SECONDS = 5, 2.0  # of each: a median


def speed(piece):
    """Returns compile time, time of a step and multiply-adds a second."""
    from steps import PEERS

    run, macs, memory = PEERS[piece["peer"]](piece)  # run(n) returns when n steps are done
    start = time.perf_counter()
    run(1)
    first = time.perf_counter() - start
    run(2)
    one = timed(run, 2)
    count = piece.get("steps") or max(2, round(SECONDS / one))
    rounds = 1 if piece.get("steps") else ROUNDS
    seconds = [timed(run, count) for _ in range(rounds)]
    step = statistics.median(seconds)
    flops = 2 * macs * (3 if piece.get("training") else 1) * piece.get("images", 1)
    return {
        "compile_s": round(first - one, 1),
        "ms": round(1e3 * step, 3),
        "spread_ms": [round(1e3 * s, 3) for s in (min(seconds), max(seconds))],
        "images_per_s": round(piece.get("images", 1) / step, 1),
        "tflops": round(flops / step / 1e12, 4),
        "memory_gb": memory(),
    }


def timed(run, count):
    start = time.perf_counter()
    run(count)
    return (time.perf_counter() - start) / count


def measured(piece):
    """Returns what was found of a piece; its arrays and programs are given back."""
    try:
        if piece["peer"] == "CIFAR-10":
            from cifar import train

            return train(piece)
        return speed(piece)
    except Exception as error:  # such as too little memory: the next piece may be smaller
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
    finally:
        gc.collect()


if __name__ == "__main__":
    end = time.monotonic() + float(sys.argv[2])
    for piece, least in json.loads(sys.argv[1]):
        late = end - time.monotonic() < least
        print("late" if late else json.dumps(measured(piece)), flush=True)
