"""A model that looks again: named by its user, on any server that speaks OpenAI's chat form with pictures.

>>> library.checker = Looker(library.store, Endpoint("http://localhost:8080/v1", "qwen"))  # doctest: +SKIP
>>> library.search("a dog runs", check=10)  # doctest: +SKIP
"""

from moviola.looker.asking import Answer, Sentence, ask
from moviola.looker.endpoint import KEY, STOPPED, Endpoint, NoReply
from moviola.looker.evidence import LONGEST_SIDE, MOST_LETTERS, MOST_STILLS, Sending
from moviola.looker.looker import Looker
from moviola.looker.steps import MOST_STILLS_OF_ALL, Cited

__all__ = [
    "KEY", "LONGEST_SIDE", "MOST_LETTERS", "MOST_STILLS", "MOST_STILLS_OF_ALL", "STOPPED", "Answer", "Cited",
    "Endpoint", "Looker", "NoReply", "Sending", "Sentence", "ask",
]  # fmt: skip
