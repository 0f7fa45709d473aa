"""What an address of a Milvus server says, and what is never said of it."""

from __future__ import annotations

import numpy as np
import pytest

from moviola.addons.milvus import MilvusAddress, MilvusIndex
from moviola.errors import IndexServerError, InvalidValue

SECRET = "s3cret-of-mine"


def test_an_address_and_what_it_leaves_out() -> None:
    address = MilvusAddress.of("milvus://vectors.example/films")
    assert (address.uri, address.collection, address.kind) == (
        "http://vectors.example:19530",
        "films",
        "flat",
    )
    assert str(address) == "milvus://vectors.example:19530/films"
    assert MilvusAddress.of(str(address)) == address


def test_an_address_with_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOVIOLA_MILVUS_TOKEN", raising=False)
    text = f"milvus+https://[::1]:443/films_2?index=ivf&lists=64&timeout=5&token={SECRET}"
    address = MilvusAddress.of(text)
    assert address.uri == "https://[::1]:443"
    assert (address.kind, address.lists, address.timeout, address.credential) == ("ivf", 64, 5.0, SECRET)
    monkeypatch.setenv("MOVIOLA_MILVUS_TOKEN", "that of the environment")
    assert address.credential == "that of the environment"
    assert SECRET not in f"{address} {address!r}"


def test_the_same_place_is_the_same_address() -> None:
    plain = MilvusAddress.of("milvus://host/films")
    assert MilvusAddress.of(f"milvus://host:19530/films?timeout=3&token={SECRET}") == plain
    assert MilvusAddress.of("milvus://host/films?index=ivf") != plain


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("postgres://host/films", "not an address"),
        ("milvus:///films", "not an address"),
        ("milvus://host:port/films", "not an address"),
        ("milvus://host", "collection's name"),
        ("milvus://host/two/parts", "collection's name"),
        ("milvus://host/9films", "collection's name"),
        (f"milvus://me:{SECRET}@host/films", "MOVIOLA_MILVUS_TOKEN"),
        (f"milvus://me:a/{SECRET}@host/films", "not an address"),
        (f"milvus://me:a?{SECRET}@host/films", "not an address"),
        (f"milvus://host/films?Token={SECRET}", "'Token'"),
        (f"milvus://host/films?token=a@{SECRET}&index=hnsw", "index=hnsw is unknown"),
        (f"milvus://host/films?token={SECRET}&indx=ivf", "'indx'"),
        (f"milvus://host/films?token={SECRET}&index=hnsw", "index=hnsw is unknown"),
        (f"milvus://host/films?lists=many&token={SECRET}", "lists=many"),
        ("milvus://host/films?lists=2.5", "lists=2.5: must be a whole number"),
        (f"milvus://host/films?%74oken={SECRET}&index=hnsw", "index=hnsw is unknown"),
        (f"milvus://host/films?timeout=0&token={SECRET}", "timeout=0"),
        (f"milvus://host/films?token={SECRET}&", "not an address"),
        (f"milvus://host/films?token={SECRET}#here", "'#'"),
    ],
)
def test_a_wrong_address_is_refused_without_its_secret(text: str, reason: str) -> None:
    with pytest.raises(InvalidValue, match=reason) as refusal:
        MilvusAddress.of(text)
    assert SECRET not in str(refusal.value)


def test_a_server_that_does_not_answer_is_named_with_the_remedy() -> None:
    index = MilvusIndex.at(f"milvus://127.0.0.1:1/films?timeout=1&token={SECRET}")(4)
    with pytest.raises(
        IndexServerError, match=r"milvus://127\.0\.0\.1:1/films: .*start the server"
    ) as failure:
        index.published()
    assert SECRET not in str(failure.value)
    vector = np.eye(1, 4, dtype=np.float32)
    index.add(np.array([7], np.int64), vector)
    assert index.search(vector, 1)[1].tolist() == [[7]]  # what is not written yet needs no server
