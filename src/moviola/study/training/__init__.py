"""Training: tasks, loop, recipes, evaluation. Import the module that you need.

- from features to a trained model: ``experiment``; from a model to answers: ``answering``
- one file per paper: ``recipes``; batches: ``tasks``; the loop: ``loop``, ``optimizers``
- input of refiners: ``first_stage``; calibration of their scores: ``fit_calibration``
"""
