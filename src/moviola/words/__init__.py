"""Words of texts in any language, as terms by which lines, queries and names are compared.

Examples:
    >>> from moviola.words import terms_of_word, terms_of_text
    >>> sorted(terms_of_word("häuser", "de") & set(terms_of_text("ein altes Haus", "de")))
    ['haus·de']
"""

from moviola.words.folding import fold, marks_differ
from moviola.words.language_names import language_beside, language_named, language_title, require_language
from moviola.words.language_tags import base_language, same_language
from moviola.words.languages import detected, each_detected, language_of_line
from moviola.words.scripts import letters_of, pairs_of, script_language, script_of
from moviola.words.spellings import is_short_number, joined_numbers, short_numbers_within, words_in
from moviola.words.terms import Asked, AskedWord, asked_of, terms_of_text, terms_of_word, written_as

__all__ = [
    "Asked", "AskedWord", "asked_of", "base_language", "detected", "each_detected", "fold",
    "is_short_number", "joined_numbers", "language_beside", "language_named", "language_of_line",
    "language_title", "letters_of", "marks_differ", "pairs_of", "require_language", "same_language",
    "script_language", "script_of", "short_numbers_within", "terms_of_text", "terms_of_word", "words_in",
    "written_as",
]  # fmt: skip
