"""A trained model on one page, to send to a colleague."""

from keras_vit.report.write import report as report
