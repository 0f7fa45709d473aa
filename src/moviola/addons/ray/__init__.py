"""Indexing by processes of this machine or by a cluster, with Ray: the ``moviola.workers`` of both."""

from moviola.addons.ray.workers import Workers

__all__ = ["Workers"]
