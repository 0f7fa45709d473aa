"""Training: what models learn from, how, and how they are judged. Import the file that you need.

- from features to a trained model, and from a model to answers: ``experiment``
- one file per model: ``recipes``; what batches are made of: ``tasks``; the loop: ``loop``, ``optimizers``
- what refiners build on: ``first_stage``; what their scores mean: ``calibration``
"""
