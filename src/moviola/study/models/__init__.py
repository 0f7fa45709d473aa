"""Trainable models, one module per paper, with shared parts. Import the module that you need."""
