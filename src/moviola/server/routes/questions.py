"""Questions about the films, which a model that looks answers in sentences with citations."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter
from fastapi import Path as PathParameter
from pydantic import Field

from moviola.errors import InvalidValue, MoviolaError
from moviola.looker import Answer, Endpoint, Sending, ask
from moviola.search.found import present_videos
from moviola.server import schemas
from moviola.server.problems import WrongField
from moviola.server.questions import Questioning
from moviola.server.service import Service, ServiceOf

router = APIRouter(prefix="/api/questions", tags=["questions"])

Name = Annotated[str, PathParameter(max_length=100, description="Of the question.", examples=["3f" * 16])]


class QuestionRequest(schemas.RequestModel):
    """A question about the films."""

    question: str = Field(min_length=1, examples=["Who carries the ladder, and when?"])
    rounds: int = Field(default=8, ge=1, le=20, description="Replies of the model, at most.", examples=[8])
    seconds: float = Field(
        default=300.0, ge=1, le=600, allow_inf_nan=False, description="For all of them.", examples=[300.0]
    )


class Sent(schemas.ResponseModel):
    """What goes to the model, at one time; without moments the question alone."""

    moments: int = Field(examples=[6])
    stills: int = Field(examples=[6])
    bytes: int = Field(description="Of all stills.", examples=[180_000])
    letters: int = Field(description="Of what is said or written there.", examples=[286])


class CitedMoment(schemas.ResponseModel):
    """A moment that a sentence cites: a search has found it, or the model has looked at it."""

    video_id: str = Field(examples=["holiday/beach"])
    start: float = Field(examples=[12.0])
    end: float = Field(examples=[19.5])
    version: str = Field(description="Of the video; for addresses that may be kept.", examples=["3"])
    away: bool = Field(description="Whether the video's file is away.", examples=[False])
    looked: bool = Field(description="Whether the model looked at several stills of it.", examples=[True])


class CitingSentence(schemas.ResponseModel):
    """A sentence, which nobody has checked, and the moments that it cites, one at least."""

    text: str = Field(description="Plain text, never markup.", examples=["A man carries it into the yard."])
    cites: list[CitedMoment]


class FilmAnswer(schemas.ResponseModel):
    """The answer to a question."""

    sentences: list[CitingSentence]
    untold: bool = Field(description="Whether the films do not say it.", examples=[False])
    left_out: int = Field(description="Sentences without a citation that exists.", examples=[0])
    cause: str = Field(description="Why there is no answer; empty where there is one.", examples=[""])
    searches: list[str] = Field(description="What was searched for.", examples=[["a ladder"]])
    failed: list[str] = Field(description="Steps that could not be taken, and why.", examples=[[]])
    stills: int = Field(description="Number of those that were sent.", examples=[12])


class QuestionState(schemas.ResponseModel):
    """How a question stands."""

    id: str = Field(examples=["3f" * 16])
    question: str = Field(examples=["Who carries the ladder, and when?"])
    state: Literal["queued", "running", "done", "failed", "cancelled"] = Field(examples=["running"])
    model: str = Field(description="That answers.", examples=["qwen2.5vl"])
    host: str = Field(description="Where it is sent.", examples=["localhost:11434"])
    sent: list[Sent] = Field(description="What went to the model so far.")
    answer: FilmAnswer | None = Field(description="Null until it is done.")
    error: str = Field(description="Why it has failed.", examples=[""])


@router.post("", status_code=201)
async def begin(request: QuestionRequest, service: ServiceOf) -> QuestionState:
    """Ask a question about the films: its state says how far that is, and its answer follows.

    Stills and words go to the server's model that looks; 409: none is named. The right to change is needed.
    """
    endpoint, most = _endpoint(service), service.options.limits.query_characters
    if not request.question.strip() or len(request.question) > most:
        wrong = InvalidValue(f"question of {len(request.question)} letters: give one of 1 to {most}")
        raise WrongField("question", wrong, longest=most)

    def work(one: Questioning) -> Answer:
        def announce(sending: Sending) -> None:
            one.sent.append(sending)
            service.say(sending)

        service.library.store.refresh()
        return ask(
            service.library, endpoint, one.text, rounds=request.rounds, seconds=request.seconds,
            announce=announce, stop=one.stop,
        )  # fmt: skip

    return await _state(await service.questions.begin(request.question, work), service)


@router.get("/{question}")
async def state(question: Name, service: ServiceOf) -> QuestionState:
    """How far a question is, and its answer. The right to change is needed."""
    return await _state(service.questions.get(question), service)


@router.delete("/{question}", status_code=204)
async def cancel(question: Name, service: ServiceOf) -> None:
    """End the work on a question, the request to the model too, and forget it."""
    service.questions.cancel(question)


def _endpoint(service: Service) -> Endpoint:
    if service.options.looker is None:
        raise MoviolaError("no model that looks is named; start the server with --looker and --looker-model")
    return service.options.looker


async def _state(one: Questioning, service: Service) -> QuestionState:
    endpoint = _endpoint(service)
    answer = one.answer
    return QuestionState(
        id=one.name, question=one.text, state=one.state, model=endpoint.model, host=endpoint.host,
        sent=[Sent.model_validate(sending) for sending in one.sent],
        answer=None if answer is None else await service.media.run(_described, service, answer),
        error=service.without_paths(one.error),
    )  # fmt: skip


def _described(service: Service, answer: Answer) -> FilmAnswer:
    """An answer with what there is of its videos now: one may have been removed since."""
    service.library.store.refresh()
    videos, away = present_videos(answer.video_ids, service.library.catalogue)
    answer = answer.citing(videos)
    sentences = [
        CitingSentence(text=sentence.text, cites=[
            CitedMoment(
                video_id=one.moment.video_id, start=one.moment.start, end=one.moment.end,
                version=videos[one.moment.video_id].version, away=one.moment.video_id in away,
                looked=one.looked,
            )
            for one in sentence.cites
        ])
        for sentence in answer.sentences
    ]  # fmt: skip
    return FilmAnswer(
        sentences=sentences, untold=answer.untold, left_out=answer.left_out, cause=answer.cause,
        searches=[*answer.searches], failed=[*answer.failed], stills=answer.stills,
    )  # fmt: skip
