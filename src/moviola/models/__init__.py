"""Trainable models, one file a paper, with the parts that they share. Import the file that you need."""
