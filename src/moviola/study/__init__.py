"""The study of moment retrieval: models, training, data sets, measures, benchmarks, judging, their commands.

What finds moments never names this side; it comes in by the hooks of :mod:`moviola.plugins`.
"""
