"""What is on disk: settings, catalogue, places of files, caches, and the encoders and models they name."""
