"""One piece in a process of its own: prints what it found as JSON.

python worker.py '{"peer": "keras_vit", "variant": "B/16", "image": 224, "training": true, "images": 256}'
"""

import json
import statistics
import sys
import time

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


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    if asked["peer"] == "CIFAR-10":
        from cifar import train

        print(json.dumps(train(asked)))
    else:
        print(json.dumps(speed(asked)))
