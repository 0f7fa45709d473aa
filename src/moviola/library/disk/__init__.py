"""A library's files: settings, catalogue, places of videos, caches, and the encoders and models they name."""
