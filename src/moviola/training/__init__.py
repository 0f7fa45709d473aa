"""Training: a loop, its data, its optimisers and its configuration. Import the file that you need."""
