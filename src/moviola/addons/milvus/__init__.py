"""Indexes on a Milvus server: the types of ``moviola.indexes`` for addresses ``milvus://`` and ``milvus+https://``."""

from moviola.addons.milvus.index import TOKEN_VARIABLE, MilvusAddress, MilvusIndex

__all__ = ["TOKEN_VARIABLE", "MilvusAddress", "MilvusIndex"]
