"""Notes on unknown words of a query, and on how certain the moments of an answer are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from moviola.encoders.contract import KnowsLanguages, TextJudge, WordJudge
from moviola.errors import installing
from moviola.files.spelling import alike_in_spelling, nearest_first
from moviola.library import stems_in
from moviola.retrieval.phrases import FUNCTION_WORDS, unframed
from moviola.search.evidence import EvidenceGatherer, Rows
from moviola.search.hints import dates_in, names_in
from moviola.search.notes import Note
from moviola.search.queries import Marked, SearchQuery, Simple, Steps, Text, Without, parts_of, terms_of
from moviola.words import (
    base_language,
    fold,
    language_of_line,
    pairs_of,
    script_language,
    script_of,
    terms_of_word,
    words_in,
)
from moviola.words.english import english_like, is_english, sounds_english

__all__ = ["notes_of"]

# Words that are named as unknown, words that are offered for each, and videos that are in in part.
_MOST = 3


def notes_of(gatherer: EvidenceGatherer, query: SearchQuery, rows: Rows) -> list[Note]:
    """Notes on words that nothing in a library holds, and on scores that nobody measured.

    Words are offered that lines and names hold and that are spelt like an unknown one, and English ones that
    the encoder of pictures knows. Where pictures are searched, words that their encoder knows, or may
    know, are not unknown; a word that it knows in another language alone, among English ones or alone and
    like an English one by its sound, is doubted: it is named where another one is offered.
    """
    terms = [term for thing in _wanted(query) for term, _ in terms_of(thing) if isinstance(term, Text)]
    texts = [term.text for term in terms]
    unknown = _unknown_in(gatherer, terms, rows)
    language = _of_language(gatherer, texts)
    if gatherer.texts is not None and any(not note.others for note in language):
        # The encoder of pictures reads this language, and knows more words than those that are one piece.
        unknown = {word: near for word, near in unknown.items() if near}
    remedy = "" if language else _if_foreign(gatherer, texts)
    doubted = {word for word in unknown if _may_know(gatherer, word)}
    if language:
        unknown = {word: near for word, near in unknown.items() if word not in doubted}
    seen = {} if any(note.about for note in language) else _seen_like(gatherer, unknown)
    offered = {
        word: tuple(nearest_first(word, dict.fromkeys([*near, *seen.get(word, ())])))[:_MOST]
        for word, near in unknown.items()
    }
    notes = [
        Note("unknown word", word, near, "" if unknown[word] else remedy)
        for word, near in offered.items()
        if near or word not in doubted
    ]
    notes += language
    notes += _of_filters(gatherer, texts)
    notes += [Note("unmeasured", name) for name in _unmeasured(gatherer)]
    return notes + _in_part(gatherer, rows)


def _unknown_in(gatherer: EvidenceGatherer, terms: Sequence[Text], rows: Rows) -> dict[str, tuple[str, ...]]:
    """Words of some texts that nothing in a library holds, but for dates, with those that are near them."""
    unknown: dict[str, tuple[str, ...]] = {}
    for term in terms:
        words = _unheld(gatherer, term, rows)
        unknown |= {word: _near(gatherer, word) for word in words[:_MOST]}
    dates = {word for term in terms for written, _ in dates_in(term.text) for word in words_in(written)}
    return {word: near for word, near in unknown.items() if word not in dates}


def _in_part(gatherer: EvidenceGatherer, rows: Rows) -> list[Note]:
    """The searched videos of which the rest is still to come, or is known by key frames alone."""
    view, known = gatherer.view, gatherer.view.unfinished
    searched = [row for row in known if rows is None or row in rows]
    notes = [Note("in part", view.videos[row].video_id, known[row]) for row in searched[:_MOST]]
    rough = sum(1 for row in view.by_key_frames if rows is None or row in rows)
    if rough:
        notes.append(Note("by key frames", str(rough), (str(len(view.videos if rows is None else rows)),)))
    return notes


def _of_filters(gatherer: EvidenceGatherer, texts: Sequence[str]) -> list[Note]:
    """What of a query filters know better, unless they are given: dates, and names that may be of places."""
    filters, notes = gatherer.filter, list[Note]()
    if filters.taken == (None, None):
        dates = [date for text in texts for date in dates_in(text)]
        notes += [Note("date", written, (value,)) for written, value in dict.fromkeys(dates)]
    names = [name for text in texts for name in names_in(text)]
    if filters.near is None and names and gatherer.store.catalogue.has_places():
        notes += [Note("place", name) for name in dict.fromkeys(names)]
    return notes


def _of_language(gatherer: EvidenceGatherer, texts: Sequence[str]) -> list[Note]:
    """In which language a query is read, if it is not English, and which encoders in use do not know it."""
    bare = map(unframed, texts)
    text = "\n".join(one for one in bare if words_in(one) or pairs_of(fold(one)))
    if not text or is_english(text):
        return []
    language = read_as(gatherer, text)
    if language == "en" or not (language or _is_foreign(text)):
        return []
    unread = _unread(gatherer, text, language)
    return [Note("language", language, unread, installing("languages") if unread else "")]


def _if_foreign(gatherer: EvidenceGatherer, texts: Sequence[str]) -> str:
    """What helps where words that nothing knows are of another language: texts without an English word may
    be names or misspelt, too, and encoders of English alone know none of these.
    """
    text = "\n".join(map(unframed, texts))
    words = words_in(text)
    if not words or any(map(is_english, words)) or not _unread(gatherer, text, ""):
        return ""
    return installing("languages")


def _unread(gatherer: EvidenceGatherer, text: str, language: str) -> tuple[str, ...]:
    """The encoders in use that do not know the language of a text; ``language`` is empty for some other than
    English.
    """
    encoders = [gatherer.view.encoders.visual] if gatherer.texts is not None else []
    lines = gatherer.view.cues and gatherer.kinds
    sentences = gatherer.meaning.of_query(text).reader if gatherer.meaning is not None and lines else None
    unread = (
        encoder.id
        for encoder in (*encoders, sentences)
        if isinstance(encoder, KnowsLanguages) and not _knows(encoder, language)
    )
    return tuple(dict.fromkeys(unread))


def _knows(encoder: KnowsLanguages, language: str) -> bool:
    """Whether an encoder knows a language; one of English alone knows no other, whichever it is."""
    known = {base_language(one) for one in encoder.languages}
    if not known or not language:
        return known != {"en"}
    return base_language(language) in known


def _is_foreign(text: str) -> bool:
    """Whether a text has other letters than English, or most of its words are not English: one of them may be
    misspelt, or a name. A single one is where it has marks, and is no English word without them ("café").
    """
    if script_of(text) not in ("", "LATIN"):
        return True
    words = words_in(text)
    if len(words) == 1:
        return not words[0].isascii() and not is_english(fold(words[0]))
    return 2 * sum(map(is_english, words)) < len(words)


def read_as(gatherer: EvidenceGatherer, text: str) -> str:
    """The language in which a text is read that is not English: by its letters, by the one language of the
    library whose lines hold its words, or as a line shows it; empty where that cannot be said. Of the
    languages of the library those count to which the answer is limited.
    """
    limited = frozenset(map(base_language, gatherer.filter.languages))
    own, catalogue = limited or gatherer.languages, gatherer.store.catalogue
    if language := script_language(text):
        return "ja" if language == "zh" and "ja" in own and "zh" not in own else language
    words = words_in(text)
    holding = [
        language
        for language in sorted(own - {"en"})
        if words and all(catalogue.cues_with(terms_of_word(word, language)) for word in words)
    ]
    return holding[0] if len(holding) == 1 else language_of_line(text)


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
    if gatherer.sounds is not None and gatherer.texts is None and gatherer.names is None:
        return []  # sounds alone are compared by meaning
    if gatherer.names is not None:
        names = gatherer.names
        stems = stems_in(text.text, gatherer.languages, every=True)
        words = [w for w in words if not any(len(names.videos_with(stem)) for stem in stems.get(w, ()))]
    # One other word that is English may be one of another language, too ("die Katze").
    english = {word for word in words_in(text.text) if is_english(word)}
    surely = not FUNCTION_WORDS.isdisjoint(english)
    alone = len(words_in(text.text)) == 1
    return [
        word
        for word in words
        if not _may_know(
            gatherer,
            word,
            english=surely or len(english - {word}) > 1 or (alone and sounds_english(word)),
        )
    ]


def _near(gatherer: EvidenceGatherer, word: str) -> tuple[str, ...]:
    """Words of lines and names that are spelt like an unknown one."""
    near = gatherer.store.catalogue.words_near(word) if gatherer.kinds else []
    if gatherer.names is not None:
        near += alike_in_spelling(word, sorted(gatherer.names.words()))
    return tuple(dict.fromkeys(near))[:_MOST]


def _seen_like(gatherer: EvidenceGatherer, unknown: Iterable[str]) -> dict[str, list[str]]:
    """English words that the encoder of the searched pictures can answer, spelt like unknown words."""
    encoder: object = gatherer.view.encoders.visual
    if gatherer.texts is None or not isinstance(encoder, WordJudge):
        return {}
    # One that knows when a text means nothing puts words together from pieces.
    reads_pieces = isinstance(encoder, TextJudge)
    return {
        word: [one for one in english_like(word) if reads_pieces or encoder.has_word(one, english=True)]
        for word in unknown
    }


def _may_know(gatherer: EvidenceGatherer, word: str, *, english: bool = False) -> bool:
    """Whether a word may be in the vocabulary of the encoder of searched pictures, or in that of English;
    most encoders cannot say. False where no pictures are searched.
    """
    encoder = gatherer.view.encoders.visual
    if gatherer.texts is None or encoder is None:
        return False
    if isinstance(encoder, TextJudge):
        return encoder.has_word(word, english=english)
    return not english or not isinstance(encoder, WordJudge) or encoder.has_word(word) or is_english(word)


def _unmeasured(gatherer: EvidenceGatherer) -> list[str]:
    """Encoders and models whose scores are searched by and were not measured."""
    unmeasured = []
    if gatherer.texts is not None:
        refiner, encoder = gatherer.texts.refiner, gatherer.view.encoders.visual
        assert encoder is not None
        trained = gatherer.texts.stage1.trained if refiner is None else not refiner.in_encoder_space
        if trained and (refiner is None or refiner.calibration is None):
            unmeasured.append("the model in use")
        elif not trained and not encoder.match.measured:
            unmeasured.append(encoder.id)
    if gatherer.kinds and gatherer.meaning is not None and not gatherer.meaning.measured:
        unmeasured.append(gatherer.meaning.encoder.id)
    return unmeasured
