"""The offline rewriter: names to nouns, with agreement."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.study.datasets.building.person_names import NameLexicon, learn_names
from moviola.study.datasets.building.rewriting import find_names, rewrite

LEXICON = learn_names([
    "Then Castle takes his coat.", "When Castle sits he sighs.", "So Castle rubs his eyes.",
    "Later Beckett takes her gun.", "Now Beckett rubs her eyes.", "There Beckett sits as she reads.",
    "Now Monica waves to Rachel Green.", "Then Ross and Dr. Gregory meet Eric, Raj and Howard.",
    "Now Sheldon sits.", "In Sheldons room.",
    "But Sheldon talks to Sheldon and Sheldon.", "The TV in Central Perk is on.", "He sees Vogler.",
    "Zelda's mom sees him.", "Zora shyly raises her hand.", "Zebedee Vogler sits.",
])  # fmt: skip


@pytest.mark.parametrize(
    ("precise", "imprecise"),
    [
        ("Eric and Dr. Gregory were having a conversation.", "Two people were having a conversation."),
        ("Rachel Green and Ross were having a conversation.", "Two people were having a conversation."),
        ("Raj, Howard and Sheldon comes out of the room.", "Three men come out of the room."),
        ("Monica and Rachel was talking.", "Two women were talking."),
        ("Monica walks towards Rachel.", "A woman walks towards another woman."),
        ("Castle opens the door and Beckett is there.", "A man opens the door and a woman is there."),
        ("Ross hugs Monica, then Ross leaves.", "A man hugs a woman, then the man leaves."),
        ("Ross looks at Raj and Raj leaves.", "A man looks at another man and the other man leaves."),
        ("Sheldons phone rings.", "A man's phone rings."),
        ("Ross and Rachel's flat is on fire.", "Two people's flat is on fire."),
        ("Beckett sits with her friend Monica.", "A woman sits with her friend."),
        ("She looks at a young Sheldon.", "She looks at a young man."),
        ("Dr. Gregory reads.", "A doctor reads."),
        ("She talks to Ross and Monica walks over.", "She talks to a man and a woman walks over."),
        ("A man meets Ms. Tarantula.", "A man meets a woman."),
        ("Mrs. Vogler reads.", "A woman reads."),
        ("Vogler takes her hat.", "A woman takes her hat."),
        ("Vogler sees Ross.", "A person sees a man."),
        ("castle takes a pen.", "A man takes a pen."),
        ("A man watches TV in Central Perk.", "A man watches TV in Central Perk."),
        ("Someone knocks. Castle opens.", "Someone knocks. A man opens."),
        ("Dr. 13 sighs and Mr. A leaves.", "A doctor sighs and a man leaves."),
        ("Miss X. walks out of the room.", "A woman walks out of the room."),
        ("Dr, Gregory reads to Dr. frman.", "A doctor reads to another doctor."),
        ("The door closes behind Mr. and Mrs. Vogler.", "The door closes behind two people."),
        ("Mr. and Mrs. Vogler was there.", "Two people were there."),
        ("Zelda's mom sees him.", "A man's mom sees him."),
        ("Zora shyly raises her hand.", "A woman shyly raises her hand."),
        ("Zebedee Vogler sits.", "A person sits."),
        ("She talks to the Dr. He leaves.", "She talks to the Dr. He leaves."),
    ],
)
def test_examples(precise: str, imprecise: str) -> None:
    assert rewrite(precise, LEXICON) == imprecise


NAMES = ("Castle", "Beckett", "Monica", "Ross", "Sheldon", "Vogler", "Dr. Gregory")


@given(
    st.lists(
        st.sampled_from((*NAMES, "and", "sees", "the", "door", "'s", ",", ".", "a", "young")), max_size=14
    )
)
def test_no_name_is_left_and_it_is_done_once(words: list[str]) -> None:
    once = rewrite(" ".join(words), LEXICON)
    assert find_names(once, LEXICON) == []
    assert rewrite(once, LEXICON) == once


def test_real_captions_lose_their_names(annotations: Path) -> None:
    rows = (annotations / "tvr" / "tvr_val_release.jsonl").read_text().splitlines()
    captions = [json.loads(row)["desc"] for row in rows]
    lexicon: NameLexicon = learn_names(captions)
    leads = {
        name: lexicon.gender.get(name)
        for name in ("castle", "beckett", "house", "robin", "thirteen", "barney")
    }
    assert leads == {
        "castle": "m",
        "beckett": "f",
        "house": "m",
        "robin": "f",
        "thirteen": "f",
        "barney": "m",
    }
    rewrites = [rewrite(caption, lexicon) for caption in captions]
    left = sum(bool(find_names(new, lexicon)) for new in rewrites)
    assert left <= 0.001 * len(captions)
    assert sum(new != " ".join(old.split()) for new, old in zip(rewrites, captions, strict=True)) > 0.8 * len(
        captions
    )
