"""Ideas for Reel, each tried alone: ``python benchmarks/reel_ideas/run.py``."""
