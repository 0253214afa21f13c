#!/bin/bash
# Speed, share of the peak and CIFAR-10 on a GPU, by JAX, in pieces of at most ten minutes: call it until it says "done".
#
#   benchmarks/gpu/run.sh OUT               a directory; what it holds already is not measured again
#   benchmarks/gpu/run.sh OUT --rehearse    the same code on any machine, with tiny models: fails here, not there
#   benchmarks/gpu/run.sh OUT --seconds 540 --cifar10 cifar10-0.npz cifar10-1.npz     (files of pack.py)
#
# Needs keras, typeguard, Pillow, jax, flax, optax and, for timm, torch and timm; no TensorFlow.
here=$(cd "$(dirname "$0")" && pwd)
export KERAS_BACKEND=jax PYTHONPATH="$here/../..${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
exec "${PYTHON:-python3}" "$here/run.py" "$@"
