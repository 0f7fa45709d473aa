"""Tags and names of languages: what is the same one, and what people and files call it."""

from __future__ import annotations

import pytest

from moviola.errors import InvalidValue
from moviola.words import language_named, require_language, same_language

ALIKE = """
de de-AT; de-AT de-Latn-AT; pt pt-BR; zh zh-TW; zh-TW zh-Hant; zh-HK zh-Hant; zh-Hans zh-CN; zh yue; no nb;
nn no; nb-NO no; sr sr-Latn; es es-419; es-MX es-419; en en-US
"""
APART = """
de-AT de-CH; pt-BR pt-PT; zh-Hant zh-Hans; zh-TW zh-CN; zh-TW zh-HK; zh-Hant zh-CN; nb nn; sr-Latn sr-Cyrl;
es-419 es-ES; de nl; de-AT nl; d de; no da; en-US en-GB
"""


@pytest.mark.parametrize(("pairs", "alike"), [(ALIKE, True), (APART, False)])
def test_languages_are_the_same_where_nothing_that_both_say_differs(pairs: str, alike: bool) -> None:
    """Whichever of the two is the line's: ``de-AT`` finds what is just German, ``de`` what is Austrian."""
    for pair in pairs.split(";"):
        one, other = pair.split()
        assert same_language(one, other) is same_language(other, one) is alike, pair


def test_no_language_is_none() -> None:
    assert same_language("", "") and not same_language("", "de") and not same_language("de-AT", "")


@pytest.mark.parametrize(
    ("given", "tag"),
    [
        ("ger", "de"), ("deu", "de"), ("GER-at", "de-AT"), ("Deutsch", "de"), ("alemán", "de"),
        ("德语", "de"), ("Englisch", "en"), ("inglés", "en"), ("chino", "zh"), ("zh_tw", "zh-TW"),
        ("pob", "pt-BR"), ("nob", "nb"), (" French ", "fr"),
    ],
)  # fmt: skip
def test_a_language_may_be_given_by_code_or_name(given: str, tag: str) -> None:
    """Names in the languages of the page, too."""
    assert require_language("language", given) == tag


@pytest.mark.parametrize(
    ("given", "offered"),
    [("Germann", "German"), ("spansih", "Spanish"), ("Deutch", "German"), ("chinees", "Chinese"),
     ("portugese", "Portuguese"), ("españl", "Spanish"), ("alemn", "German"),
     ("xx", "such as"), ("", "such as")],
)  # fmt: skip
def test_a_misspelt_language_is_offered(given: str, offered: str) -> None:
    with pytest.raises(InvalidValue, match=offered):
        require_language("language", given)


@pytest.mark.parametrize("word", ["china", "brazil", "us", "uk2", "cut", "united"])
def test_countries_are_no_languages(word: str) -> None:
    """A film's own name may end with one."""
    assert language_named(word) is None
