"""Encoders by torch: on a GPU, in half precision, and where :mod:`moviola.encoders.graphs` knows no graph.

Nothing else in this room imports torch or transformers.
"""
