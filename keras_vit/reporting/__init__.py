"""One HTML page about a trained model, to send to a colleague."""

from keras_vit.reporting.write import report as report
