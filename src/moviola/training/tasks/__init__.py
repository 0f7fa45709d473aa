"""What batches are made of, whatever the model: segments, windows, answers, pairs, candidates."""
