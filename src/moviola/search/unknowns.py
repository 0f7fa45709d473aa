"""What is not known of a query's words, and of how likely the moments of an answer are right."""

from __future__ import annotations

from moviola.encoders import FrameTextEncoder, TextJudge
from moviola.files.spelling import alike_in_spelling
from moviola.retrieval.phrases import FUNCTION_WORDS, unframed
from moviola.retrieval.spellings import words_in
from moviola.search.evidence import EvidenceGatherer, Rows
from moviola.search.name_evidence import stems_of_word
from moviola.search.notes import Note
from moviola.search.queries import Marked, SearchQuery, Simple, Steps, Text, Without, parts_of, terms_of

__all__ = ["notes_of"]

# Words that are named as unknown, and words that are offered for each.
_MOST = 3


def notes_of(gatherer: EvidenceGatherer, query: SearchQuery, rows: Rows) -> list[Note]:
    """Notes on words that nothing in a library holds, and on scores that nobody measured.

    Words are offered that lines and names hold and that are spelt like an unknown one. Where pictures are
    searched, words that their encoder knows, or may know, are not unknown.
    """
    unknown: dict[str, tuple[str, ...]] = {}
    for thing in _wanted(query):
        for term, _ in terms_of(thing):
            words = _unheld(gatherer, term, rows) if isinstance(term, Text) else []
            unknown |= {word: _near(gatherer, word) for word in words[:_MOST]}
    notes = [Note("unknown word", word, near) for word, near in unknown.items()]
    return notes + [Note("unmeasured", name) for name in _unmeasured(gatherer)]


def _wanted(query: SearchQuery) -> tuple[Simple, ...]:
    """The parts of a query that are wanted: all but exclusions."""
    if isinstance(query, Without):
        return _wanted(query.query)
    if isinstance(query, Steps):
        return tuple(thing for step in query.steps for thing in _wanted(step))
    if isinstance(query, Marked):
        return () if query.query is None else _wanted(query.query)
    return parts_of(query)


def _unheld(gatherer: EvidenceGatherer, text: Text, rows: Rows) -> list[str]:
    """Words of a text that no line, no name, and no vocabulary of a searched encoder holds."""
    words = [word for word in words_in(unframed(text.text)) if word not in FUNCTION_WORDS]
    if gatherer.kinds:
        not_said = gatherer.cues_of(text, rows).unknown
        words = [word for word in words if word in not_said]
    if gatherer.names is not None:
        names = gatherer.names
        words = [w for w in words if not any(len(names.videos_with(stem)) for stem in stems_of_word(w))]
    if gatherer.texts is not None and (encoder := gatherer.store.encoders.visual) is not None:
        words = [word for word in words if not _may_know(encoder, word)]
    return words


def _near(gatherer: EvidenceGatherer, word: str) -> tuple[str, ...]:
    """Words of lines and names that are spelt like an unknown one."""
    near = gatherer.store.catalogue.words_near(word) if gatherer.kinds else []
    if gatherer.names is not None:
        near += alike_in_spelling(word, sorted(gatherer.names.words()))
    return tuple(dict.fromkeys(near))[:_MOST]


def _may_know(encoder: FrameTextEncoder, word: str) -> bool:
    """Whether a word may be in an encoder's vocabulary; most encoders cannot say."""
    return not isinstance(encoder, TextJudge) or encoder.has_word(word)


def _unmeasured(gatherer: EvidenceGatherer) -> list[str]:
    """Encoders and models whose scores are searched by and were not measured."""
    unmeasured = []
    if gatherer.texts is not None:
        refiner, encoder = gatherer.texts.refiner, gatherer.store.encoders.visual
        assert encoder is not None
        trained = gatherer.texts.stage1.trained if refiner is None else not refiner.in_encoder_space
        if trained and (refiner is None or refiner.calibration is None):
            unmeasured.append("the model in use")
        elif not trained and not encoder.match.measured:
            unmeasured.append(encoder.id)
    if gatherer.kinds and gatherer.meaning is not None and not gatherer.meaning.measured:
        unmeasured.append(gatherer.meaning.encoder.id)
    return unmeasured
