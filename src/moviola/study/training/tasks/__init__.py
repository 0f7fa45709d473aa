"""Batches for training: segments, windows, answers, pairs, candidates."""
