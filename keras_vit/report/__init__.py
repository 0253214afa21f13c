"""One HTML page about a trained model, to send to a colleague."""

from keras_vit.report.write import report as report
