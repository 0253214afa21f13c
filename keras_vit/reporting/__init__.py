"""The report of a trained model: one HTML page."""

from keras_vit.reporting.write import report as report
