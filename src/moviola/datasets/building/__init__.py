"""Building a ranked data set as TVR-Ranking's authors did, step by step; nothing is imported here.

Imprecise captions (``imprecise``, by ``rewriting`` or a ``chat`` endpoint), the draw of queries (``splits``),
candidates and pseudo training sets (``pseudo``, on ``nearest``), rating by people (``labelstudio``,
``consensus``), what came out (``analysis``); potentially relevant pairs (``relevant_pairs``, on ``phrases``).
"""
