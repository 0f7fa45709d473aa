"""Sentence embeddings from checkpoints in sentence-transformers' layout: a transformer, and what makes a
vector of its states (:mod:`moviola.encoders.chain`).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.devices import require_torch
from moviola.encoders.chain import read_chain
from moviola.encoders.checkpoints import Checkpoint, languages_of_card, read_json
from moviola.encoders.contract import SentenceMatch, UnrelatedCosines
from moviola.encoders.device_choice import DeviceChoice
from moviola.encoders.sections import tower_settings
from moviola.encoders.texts import CheckpointEncoder, check_texts
from moviola.encoders.token_rows import TokenRows
from moviola.encoders.tokens import Tokenize, Tokenizer, open_tokenizer
from moviola.encoders.towers import ACTIVATIONS, WORDS, Network
from moviola.encoders.weights import Weights
from moviola.errors import DataError
from moviola.words.english import is_english

__all__ = ["SentenceEncoder"]

_PREFIXES = {"bert": "bert.", "roberta": "roberta.", "xlm-roberta": "roberta."}
"""Kinds of transformer that run without torch, with the possible prefixes of their weights' names."""

_FROM_PADDING = ("roberta", "xlm-roberta", "camembert", "mpnet")
"""Kinds whose positions are counted from behind the padding's own id; the table has unused rows before."""

_SETTINGS = "sentence_*_config.json"
"""Settings of the transformer; the name in between has been that of many architectures."""

_WORD = re.compile(r"[^\W\d_]+")
# Share of a text's letters, or tokens, that an encoder has to know: of English descriptions 99 % have more
# than two thirds of their letters in words of the vocabulary, of lines in French at most .58 (MiniLM).
_READ = 0.6
# Words of a text that is too short to show its language.
_FEW_WORDS = 3
# Languages in the head of a model card: one, or a list.

_BERT_DEFAULTS: dict[str, Any] = {
    "hidden_act": "gelu",
    "layer_norm_eps": 1e-12,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 1,  # of the kinds that need it
}


# Texts whose vectors are kept: a search compares a query with pictures, cues and names, and words come again.
_KEPT = 4096


class SentenceEncoder(CheckpointEncoder):
    """A frozen encoder of texts to vectors of length ``dim``; made by
    :func:`moviola.encoders.load_sentence_encoder`. A dot product of ``normalised`` ones is the cosine.
    """

    _inputs = 2

    def __init__(self, checkpoint: Checkpoint, choice: DeviceChoice) -> None:
        super().__init__(checkpoint, choice)
        given = {key: value for key, value in self._own_config().items() if value is not None}
        self._config = tower_settings(checkpoint.folder / "config.json", "", given, _BERT_DEFAULTS)
        self._chain = read_chain(checkpoint)
        self._settings = next(map(read_json, sorted(checkpoint.folder.glob(_SETTINGS))), {})
        self.dim = self._chain.dim
        self.normalised = self._chain.normalised
        self._recent: dict[str, NDArray[np.float32]] = {}
        self._expected: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"SentenceEncoder({self.id!r}, revision={self.revision!r}, dim={self.dim})"

    def expect(self, texts: Iterable[str]) -> None:
        """Have some texts encoded with the next ones, since they will be asked for, too."""
        self._expected = tuple(texts)

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors (n, dim) float32 of n texts, of length 1 if :attr:`normalised`; too long texts are cut.

        Raises:
            InvalidValue: not a list of strings.
        """
        texts, known = check_texts(texts), self._recent
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            expected, self._expected = self._expected, ()
            new = list(dict.fromkeys([*new, *(text for text in expected if text not in known)]))
        vectors = np.empty((len(new), self.dim), dtype=np.float32)
        for batch, states in self._states([self._prefix + text for text in new]):
            vectors[batch.places] = self._chain(states, batch.present)
        known = known | dict(zip(new, self._finite(vectors), strict=True))
        self._recent = dict(islice(known.items(), max(0, len(known) - _KEPT), None))
        return np.array([known[text] for text in texts], np.float32).reshape(-1, self.dim)

    def encode_tokens(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The transformer's last states of every token of each text, special ones included, and behind them
        its vector: (tokens + 1, dim) float32; texts and errors as in :meth:`encode_text`.
        """
        texts = check_texts(texts)
        tokens: dict[int, NDArray[np.float32]] = {}
        for batch, states in self._states([self._prefix + text for text in texts]):
            vectors = self._chain(states, batch.present)
            for place, own, real, vector in zip(batch.places, states, batch.present, vectors, strict=True):
                tokens[place] = self._finite(np.concatenate([own[real], vector[None]]))
        return [tokens[place] for place in range(len(texts))]

    def knows(self, text: str) -> bool:
        """Whether a text means something (:class:`~moviola.encoders.contract.TextJudge`)."""
        # Punctuation alone has tokens, too.
        says = any(unicodedata.category(letter)[0] in "LNS" for letter in text)
        return says and not self._tokenizer.special.issuperset(self._tokenize([text])[0])

    def has_word(self, word: str, *, english: bool = False) -> bool:  # it has one vocabulary
        """Whether a word is one token (:class:`~moviola.encoders.contract.TextJudge`)."""
        return self._whole_words([word]) == [word]

    def reads(self, text: str, language: str = "") -> bool:
        """Whether a text is in a language that the encoder was trained on, so that its vector says what the
        text means: it has few unknown tokens, and if English alone was learnt, most of its letters are in
        words of the vocabulary, or it is a few words in Latin letters without marks. Texts of pieces and
        unknown tokens are all alike. If English alone was learnt, a text in another known ``language``, a
        code of ISO 639, is read only if its words are English.
        """
        if not self.knows(text):
            return False
        if self.languages == ("en",):
            if language not in ("", "en"):
                return is_english(text)
            words = _WORD.findall(text)
            plain = [word for word in words if word.isascii()]
            if len(words) == len(plain) <= _FEW_WORDS:
                return True  # the vocabulary lacks many words of English, too
            return sum(map(len, self._whole_words(plain))) >= _READ * sum(map(len, words))
        frame = len(self._tokenize([""])[0])
        tokens = self._tokenize([text])[0]
        unknown = sum(token in self._tokenizer.special for token in tokens) - frame
        return unknown <= (1 - _READ) * (len(tokens) - frame)

    def _whole_words(self, words: list[str]) -> list[str]:
        """Those of some words that are one token each."""
        special = self._tokenizer.special
        rows = self._tokenize(words) if words else []
        return [
            word
            for word, tokens in zip(words, rows, strict=True)
            if len([token for token in tokens if token not in special]) == 1
        ]

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Languages that the encoder was trained on, as its ``moviola.json`` or its model card states; empty
        if neither does.
        """
        stated = self._own.get("languages")
        if stated is None:
            stated = languages_of_card(self._checkpoint.folder / "README.md")
        if not (isinstance(stated, list) and all(isinstance(one, str) for one in stated)):
            raise DataError(
                f"{self._checkpoint.folder / 'moviola.json'}: languages is {stated!r:.100}; give a list of "
                'codes, such as ["en", "de"]'
            )
        return tuple(stated)

    @cached_property
    def match(self) -> SentenceMatch:
        """Calibration of the cosine of two texts, which a measured checkpoint states in its ``moviola.json``:
        ``{"sentences": {"slope": 10, "line": 0.83}}``.

        Raises:
            DataError: ``sentences`` of ``moviola.json`` is not two numbers, the slope above 0.
        """
        stated = self._own.get("sentences")
        if stated is None:
            return SentenceMatch()
        with suppress(TypeError, ValueError, KeyError):
            match = SentenceMatch(float(stated["slope"]), float(stated["line"]), measured=True)
            if 0 < match.slope < math.inf and math.isfinite(match.line):
                return match
        raise DataError(
            f"{self._checkpoint.folder / 'moviola.json'}: sentences is {stated!r:.100}; give two numbers, "
            '{"slope": above 0, "line": place of even odds among cosines of unrelated texts}'
        )

    @cached_property
    def unrelated(self) -> UnrelatedCosines | None:
        """Cosines of unrelated texts, if ``moviola.json`` states them (``"unrelated": {"mean": 0.1, "texts":
        0.5, "words": 0.6}``); else a library measures them (:func:`moviola.library.unrelated_of`).

        Raises:
            DataError: they are stated in another form.
        """
        stated = self._own.get("unrelated")
        if stated is None:
            return None
        with suppress(TypeError, ValueError, KeyError):
            cosines = UnrelatedCosines(*(float(stated[name]) for name in ("mean", "texts", "words")))
            if -1 <= cosines.mean < cosines.texts <= 1 and -1 <= cosines.words < 1:
                return cosines
        raise DataError(
            f"{self._checkpoint.folder / 'moviola.json'}: unrelated is {stated!r:.100}; give three cosines, "
            '{"mean": …, "texts": more than that, "words": less than 1}'
        )

    @cached_property
    def _prefix(self) -> str:
        """The beginning of every text, if ``moviola.json`` has one (``"prefix": "query: "``)."""
        stated = self._own.get("prefix", "")
        if not isinstance(stated, str):
            raise DataError(
                f"{self._checkpoint.folder / 'moviola.json'}: prefix is {stated!r:.100}; give a "
                'text, such as "query: "'
            )
        return stated

    @cached_property
    def _own(self) -> dict[str, Any]:
        return self._checkpoint.json("moviola.json")

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return open_tokenizer(self._checkpoint, self._longest)

    @cached_property
    def _tokenize(self) -> Tokenize:
        tokenize = self._tokenizer.encode
        if not self._settings.get("do_lower_case"):
            return tokenize
        return lambda texts: tokenize([text.lower() for text in texts])

    @property
    def _longest(self) -> int:
        positions = self._config.get("max_position_embeddings", 512)
        if self._config.get("model_type") in _FROM_PADDING:
            positions -= self._config["pad_token_id"] + 1
        # Newer checkpoints leave it to the tokenizer, whose settings say 1e30 for no choice.
        stated = self._settings.get("max_seq_length") or self._checkpoint.json("tokenizer_config.json").get(
            "model_max_length"
        )
        return min(int(stated or positions), int(positions))

    def _own_config(self) -> dict[str, Any]:
        return self._checkpoint.json("config.json")

    def _read_weights(self) -> Weights | None:
        prefix = _PREFIXES.get(self._config.get("model_type", ""))
        plain = (
            self._config["hidden_act"] in ACTIVATIONS
            and self._config.get("position_embedding_type", "absolute") == "absolute"
        )
        return Weights.of(self._checkpoint.folder, prefix) if plain and prefix else None

    def _network_states(
        self, weights: Weights, ids: NDArray[np.int64], present: NDArray[np.bool_]
    ) -> NDArray[np.float32]:
        tokens = TokenRows.of(present.sum(1))
        network = Network(weights, self._config, tokens)
        return tokens.spread(network.sentence_states(tokens.packed(ids)), ids.shape[1])

    def _graph_inputs(self, ids: NDArray[np.int64], present: NDArray[np.bool_]) -> tuple[NDArray[Any], ...]:
        assert self._weights is not None
        return ids, present, self._weights.rows(WORDS, ids)

    def _graph(self) -> Any:
        from moviola.encoders.graphs import sentence_states

        return sentence_states(self._own_weights(), self._config)

    def _by_torch(self) -> Callable[..., Any]:
        require_torch(f"{self.id} ({self._config.get('model_type')}) on {self.device} in {self.precision}")
        from moviola.encoders.by_torch.modules import load_pretrained

        where = (self.device, self.precision)
        model = load_pretrained("transformers", "AutoModel", self._checkpoint.folder, *where)
        return lambda ids, real: model(input_ids=ids, attention_mask=real.long()).last_hidden_state
