"""The list of mutants keeps up with the product; ``make mutants`` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutate import MUTANTS, SOURCE, Mutant

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_breaks_what_is_there(mutant: Mutant) -> None:
    """One whose text is gone, or that Python cannot read, would break nothing that a test could see."""
    source = (SOURCE / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.text) == 1
    compile(source.replace(mutant.text, mutant.instead), mutant.file, "exec")
    assert all((ROOT / test).exists() for test in mutant.tests)
    assert len({one.name for one in MUTANTS}) == len(MUTANTS)
