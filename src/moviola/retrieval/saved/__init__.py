"""Reading trained models to run them: the description, the graphs, the windows of clips that a model sees.

A model's folder is written by what trains it. Its parts run from the graphs that it holds; where they are
lacking, or a GPU is named, :mod:`moviola.retrieval.opening` opens it with torch.
"""
