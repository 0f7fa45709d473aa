"""Work that runs ahead in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from moviola.library.ingest.decode_ahead import Branch, ahead, side_by_side


def running() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "decode-ahead"]


def test_all_steps_come_in_order() -> None:
    assert list(ahead(iter(range(100)))) == list(range(100))
    assert not running()


def test_an_error_comes_after_the_steps_before_it() -> None:
    def steps() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    taken = ahead(steps())
    assert next(taken) == 1
    with pytest.raises(ValueError, match="broken"):
        next(taken)
    assert not running()


def test_only_a_few_steps_are_made_before_they_are_asked_for() -> None:
    made: list[int] = []
    enough = threading.Event()

    def steps() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            if number == 5:  # one is taken, four wait, and this one is in hand
                enough.set()
            yield number

    taken = ahead(steps())
    assert next(taken) == 0
    assert enough.wait(timeout=60)
    assert made == [0, 1, 2, 3, 4, 5]
    taken.close()
    assert len(made) <= 7
    assert not running()


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, GeneratorExit])
def test_closing_ends_the_thread(interruption: type[BaseException]) -> None:
    taken = ahead(iter(range(1000)))
    next(taken)
    with pytest.raises(interruption):
        taken.throw(interruption)
    assert not running()


def test_pieces_run_side_by_side_each_in_its_order() -> None:
    pieces = [[(piece, step) for step in range(piece + 1)] for piece in range(20)]
    taken = list(side_by_side((iter(piece) for piece in pieces), threads=3))
    assert {number for number, _ in taken} == set(range(20))
    for number, piece in enumerate(pieces):
        assert [step for of, step in taken if of == number] == [*piece, None]
    assert not running()


def test_a_piece_that_waits_does_not_hold_up_another() -> None:
    go = threading.Event()

    def waiting() -> Iterator[str]:
        assert go.wait(timeout=60)
        yield "late"

    taken = side_by_side([waiting(), iter(["early"])], threads=2)
    assert [next(taken), next(taken)] == [(1, "early"), (1, None)]
    go.set()
    assert list(taken) == [(0, "late"), (0, None)]
    assert not running()


def test_few_pieces_are_begun_before_the_oldest_is_done() -> None:
    go, begun = threading.Event(), []

    def pieces() -> Iterator[Iterator[int]]:
        yield oldest()
        for number in range(1, 10):
            begun.append(number)
            yield iter([number])

    def oldest() -> Iterator[int]:
        assert go.wait(timeout=60)
        yield 0

    taken = side_by_side(pieces(), threads=2)
    first = [next(taken) for _ in range(6)]
    assert [piece for piece in first if piece[1] is not None] == [(1, 1), (2, 2), (3, 3)]
    assert begun == [1, 2, 3]
    go.set()
    rest = [number for number, step in taken if step is not None]
    assert sorted(rest) == [0, *range(4, 10)]


@pytest.mark.parametrize("threads", [1, 3])
def test_branches_are_part_of_their_piece(threads: int) -> None:
    def piece(number: int) -> Iterator[str | Branch[str]]:
        yield f"{number} begins"
        yield Branch(iter([f"{number}a", f"{number}b"]))
        yield Branch(deeper(number))
        yield f"{number} ends"

    def deeper(number: int) -> Iterator[str | Branch[str]]:
        yield Branch(iter([f"{number}c"]))

    taken = list(side_by_side(map(piece, range(10)), threads))
    for number in range(10):
        own = [step for of, step in taken if of == number]
        assert own[-1] is None and own[0] == f"{number} begins"
        assert sorted(own[1:-1]) == [f"{number} ends", *(f"{number}{letter}" for letter in "abc")]
        assert own.index(f"{number}a") < own.index(f"{number}b")
    assert not running()


def test_a_branch_is_done_beside_what_it_came_from() -> None:
    done = threading.Event()

    def branch() -> Iterator[str]:
        done.set()
        yield "branch"

    def piece() -> Iterator[str | Branch[str]]:
        yield Branch(branch())
        assert done.wait(timeout=60)
        yield "trunk"

    taken = list(side_by_side([piece()], threads=2))
    assert sorted(taken[:-1]) == [(0, "branch"), (0, "trunk")] and taken[-1] == (0, None)
    assert not running()


@pytest.mark.parametrize("in_a_branch", [False, True])
def test_an_error_of_any_piece_or_branch_ends_all(in_a_branch: bool) -> None:
    def broken() -> Iterator[int]:
        raise ValueError("broken")
        yield 1

    pieces: list[Iterator[Any]] = [iter(range(100)), broken()]
    with pytest.raises(ValueError, match="broken"):
        list(side_by_side([iter([Branch(broken())])] if in_a_branch else pieces, threads=2))
    assert not running()


def test_no_pieces_no_steps() -> None:
    assert list(side_by_side([], threads=2)) == []
    assert not running()
