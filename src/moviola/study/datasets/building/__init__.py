"""Building a ranked data set as TVR-Ranking's authors did, step by step; nothing is imported here.

Imprecise captions (``imprecise``, by ``rewriting`` or a ``chat`` endpoint), the draw of queries (``splits``),
candidates and pseudo training sets (``pseudo``, on ``embeddings`` and ``nearest``), rating by people
(``candidate_pairs``, ``consensus``), the files between these steps (``annotation_files``); and potentially
relevant pairs (``relevant_pairs``, on ``phrases``). ``steps`` joins them: one function for each command that
needs more than one of them.
"""
