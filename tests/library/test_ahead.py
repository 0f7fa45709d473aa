"""Work that runs ahead in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from moviola.library.ahead import ahead


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
