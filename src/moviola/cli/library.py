"""Commands on a library: index, search, list, show, remove, verify, doctor, library use."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.table import Table

from moviola.cli.app import JsonOption, app, console, emit_json, leave_partial, note

if TYPE_CHECKING:
    from moviola.library import IngestReport
    from moviola.search import Library
    from moviola.types import Moment

LibraryOption = Annotated[
    Path, typer.Option("--library", "-l", envvar="MOVIOLA_LIBRARY", help="The library folder.")
]
DEFAULT_LIBRARY = Path("moviola-library")

settings_group = typer.Typer(
    name="library",
    help="What a library works with.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)
app.add_typer(settings_group)


def _open(folder: Path) -> Library:
    from moviola.search import Library

    return Library(folder, read_only=True)


@app.command("index")
def index_(
    sources: Annotated[list[Path], typer.Argument(help="Video files and folders (searched recursively).")],
    library: LibraryOption = DEFAULT_LIBRARY,
    encoder: Annotated[
        str | None,
        typer.Option(help="Visual encoder of a new library: demo, a hub id, a folder, or none."),
    ] = None,
    sentences: Annotated[
        str | None,
        typer.Option(help="Sentence encoder for subtitles: minilm, a hub id, a folder, or none."),
    ] = None,
    segment_seconds: Annotated[
        float | None, typer.Option(help="Length of the segments of a new library (4 by default).")
    ] = None,
    frame_rate: Annotated[
        float | None, typer.Option(help="Frames a second that a new library encodes (1 by default).")
    ] = None,
    prune: Annotated[
        bool, typer.Option(help="Take out videos whose file is gone from these folders.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, mps or auto.")] = "auto",
    precision: Annotated[str, typer.Option(help="fp32, fp16, bf16 or auto.")] = "auto",
    json: JsonOption = False,
) -> None:
    """Bring videos into a library; what has not changed is passed over, interrupted work goes on.

    Example: `moviola index ~/Videos --encoder openai/clip-vit-large-patch14`
    """
    from moviola.search import Library

    with Library(
        library,
        encoder=encoder,
        sentence_encoder=sentences,
        segment_seconds=segment_seconds,
        frame_rate=frame_rate,
        device=device,
        precision=precision,
    ) as lib:
        with _IndexProgress() as progress:
            report = lib.index(*sources, prune=prune, progress=progress)
        count = len(lib)
    if json:
        from dataclasses import asdict

        emit_json(asdict(report))
    else:
        _print_report(report, library, count)
    if report.refused or report.partial or report.subtitle_problems:
        leave_partial()


class _IndexProgress:
    """A bar on standard error with rate and time left; nothing when that is not a terminal."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        err = Console(stderr=True)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=err,
            disable=not err.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("looking for videos", total=None, rate="")
        self._seconds = 0.0
        self._current = 0.0

    def __enter__(self) -> _IndexProgress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, step: Any) -> None:
        if step.seconds < self._current:
            self._seconds += self._current
        self._current = step.seconds
        elapsed = self._bar.tasks[0].elapsed or 0.0
        rate = (self._seconds + self._current) / elapsed if elapsed else 0.0
        self._bar.update(
            self._task,
            total=step.total,
            completed=step.done,
            description=step.video_id,
            rate=f"{rate:.0f}x real time",
        )


def _print_report(report: IngestReport, library: Path, count: int) -> None:
    done = {
        "added": report.added,
        "updated": report.updated,
        "moved": report.moved,
        "removed": report.removed,
        "unchanged": report.unchanged,
    }
    parts = [f"{len(ids)} {what}" for what, ids in done.items() if ids] or ["nothing to do"]
    console.print(f"{library}: {', '.join(parts)}; {count} videos can be searched", markup=False)
    for what, reasons in (
        ("refused", report.refused),
        ("partial", report.partial),
        ("subtitles", report.subtitle_problems),
    ):
        for video_id, reason in reasons.items():
            note(f"{what}: {video_id}: {reason}")
    if report.ignored:
        kinds = sorted({Path(path).suffix or "no suffix" for path in report.ignored})
        note(f"ignored: {len(report.ignored)} files that are no videos by their suffix ({', '.join(kinds)})")
    for video_id in report.missing:
        note(f"missing: {video_id}: its file is gone; --prune takes it out of the library")


@app.command()
def search(
    text: Annotated[str | None, typer.Argument(help="What to look for, in plain words.")] = None,
    library: LibraryOption = DEFAULT_LIBRARY,
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="At most so many moments.")] = 10,
    per_video: Annotated[int | None, typer.Option(min=1, help="At most so many of one video.")] = None,
    video: Annotated[list[str] | None, typer.Option(help="Look only into this video; repeatable.")] = None,
    min_score: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            help="Leave out what scores less; with a trained refiner .5 is as likely right as wrong, without "
            "one as good as the luckiest piece of the library would be by chance.",
        ),
    ] = 0.0,
    by: Annotated[
        Literal["both", "visual", "subtitles"], typer.Option(help="Which evidence to use.")
    ] = "both",
    coarse: Annotated[
        bool, typer.Option("--coarse", help="Proposals as they are, without refinement.")
    ] = False,
    clips: Annotated[Path | None, typer.Option(help="Cut the moments into this folder.")] = None,
    sheet: Annotated[Path | None, typer.Option(help="Write a contact sheet of the moments (PNG).")] = None,
    queries: Annotated[
        Path | None, typer.Option(help="A file of queries: TVR-Ranking JSON, or one query a line.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Where the answers to --queries go (JSON run file).")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Moments that answer a text, best first.

    Example: `moviola search "somebody opens a red door" --top 5 --sheet found.png`

    A whole query file: `moviola search --queries test.json --run run.json --top 100`
    """
    if (text is None) == (queries is None):
        raise typer.BadParameter("give either a text or --queries FILE")
    if (queries is None) != (run is None):
        raise typer.BadParameter("--queries and --run belong together")
    if run is not None and (clips or sheet):
        raise typer.BadParameter("--clips and --sheet show the answer to one text, not to a query file")
    limits: dict[str, Any] = {
        "top_k": top, "per_video": per_video, "videos": video or None, "min_score": min_score, "by": by,
        "refine": not coarse,
    }  # fmt: skip
    with _open(library) as lib:
        if queries is not None and run is not None:
            _answer_file(lib, queries, run, limits, json)
            return
        moments = lib.search(str(text), **limits)
        sources = {m.video_id: lib.catalogue.video(m.video_id).path for m in moments}
    failed: dict[str, str] = {}
    if clips:
        from moviola.export import export_clips

        failed |= export_clips(moments, sources, clips)[1]
    if sheet:
        from moviola.export import export_sheet

        failed |= export_sheet(moments, sources, sheet, title=str(text))
    if json:
        emit_json([_plain(moment) for moment in moments])
    else:
        _print_moments(moments)
    for name, reason in failed.items():
        note(f"{name}: {reason}")
    if failed:
        leave_partial()


def _plain(moment: Moment) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(moment)


def _print_moments(moments: list[Moment]) -> None:
    from moviola.export import clock

    if not moments:
        console.print("no moment found")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("rank", justify="right")
    table.add_column("video", overflow="fold")
    table.add_column("start – end", no_wrap=True)
    table.add_column("score", justify="right")
    spoken = any(moment.snippet for moment in moments)
    if spoken:
        table.add_column("said", overflow="ellipsis", no_wrap=True)
    for moment in moments:
        row = [
            str(moment.rank), moment.video_id, f"{clock(moment.start)} – {clock(moment.end)}",
            f"{moment.score:.3f}",
        ]  # fmt: skip
        table.add_row(*row, *([moment.snippet.replace("\n", " ")] if spoken else []))
    console.print(table, soft_wrap=False)


def _answer_file(lib: Library, queries: Path, run: Path, limits: dict[str, Any], json: bool) -> None:
    import json as json_format

    from rich.console import Console
    from rich.progress import track

    from moviola.datasets.readers.queries import read_queries

    asked = read_queries(queries)
    err = Console(stderr=True)
    answers: dict[str, list[dict[str, object]]] = {}
    batches = [asked[start : start + 32] for start in range(0, len(asked), 32)]
    for batch in track(batches, "searching", console=err, disable=not err.is_terminal, transient=True):
        for query, moments in zip(batch, lib.search_many(batch, **limits), strict=True):
            answers[query.query_id] = [
                {"video_id": m.video_id, "start": m.start, "end": m.end, "score": m.score} for m in moments
            ]
    draft = run.with_name(run.name + ".tmp")
    draft.write_text(json_format.dumps(answers))
    draft.replace(run)
    found = sum(map(len, answers.values()))
    if json:
        emit_json({"queries": len(answers), "moments": found, "run": str(run)})
    else:
        console.print(f"{run}: {found} moments for {len(answers)} queries", markup=False)


@app.command("list")
def list_(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """The videos of a library, refused ones with the reason.

    Example: `moviola list --library films`
    """
    from moviola.export import clock

    with _open(library) as lib:
        videos = lib.catalogue.videos()
    if json:
        fields = ("video_id", "duration", "state", "error", "path")
        emit_json([{field: getattr(video, field) for field in fields} for video in videos])
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("video", "duration", "state"):
        table.add_column(column, overflow="fold")
    for video in videos:
        table.add_row(
            video.video_id,
            clock(video.duration),
            ": ".join(part for part in (video.state, video.error) if part),
        )
    console.print(table, soft_wrap=False)


@app.command()
def show(
    video: Annotated[str, typer.Argument(help="The video's id, as `moviola list` prints it.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """What the library knows of one video.

    Example: `moviola show holiday/beach`
    """
    from moviola.export import clock

    with _open(library) as lib:
        row = lib.catalogue.video(video)
        cues = lib.catalogue.cues(row.row)
        about: dict[str, object] = {
            "video_id": row.video_id,
            "path": row.path,
            "state": row.state,
            "error": row.error,
            "duration": row.duration,
            "width": row.width,
            "height": row.height,
            "codec": row.codec,
            "size": row.size,
            "frames": row.frames.count if row.frames else 0,
            "cues": len(cues),
        }
    if json:
        emit_json(about)
        return
    about["duration"] = clock(row.duration)
    for key, value in about.items():
        console.print(f"{key:>9}  {value}", markup=False)


@app.command()
def remove(
    videos: Annotated[list[str], typer.Argument(help="Ids, as `moviola list` prints them.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Take videos out of a library. The files themselves are not touched.

    Example: `moviola remove holiday/beach holiday/harbour`
    """
    from moviola.search import Library

    with Library(library) as lib:
        removed = lib.remove(videos)
    if json:
        emit_json({"removed": removed})
    else:
        console.print(f"{library}: {len(removed)} removed", markup=False)


@app.command()
def verify(
    library: LibraryOption = DEFAULT_LIBRARY,
    repair: Annotated[
        bool, typer.Option(help="Put right what can be: damaged videos are taken out.")
    ] = False,
    compact: Annotated[bool, typer.Option(help="Give back the space of removed videos.")] = False,
    json: JsonOption = False,
) -> None:
    """Check every stored byte, the indexes and the source files. Exit code 3 when something is wrong.

    Example: `moviola verify --repair`
    """
    from dataclasses import asdict

    from moviola import library as rooms
    from moviola.search import Library

    with Library(library, read_only=not (repair or compact)) as lib:
        repaired = rooms.repair(lib) if repair else []
        freed = rooms.compact(lib) if compact else 0
        problems = rooms.verify(lib)
    if json:
        emit_json({
            "problems": [asdict(problem) for problem in problems],
            "repaired": [asdict(problem) for problem in repaired],
            "freed_bytes": freed,
        })  # fmt: skip
    else:
        for problem in repaired:
            console.print(f"repaired: {problem.video_id or library}: {problem.message}", markup=False)
        for problem in problems:
            console.print(f"{problem.video_id or library}: {problem.message}", markup=False)
        if compact:
            console.print(f"{freed / 2**20:.1f} MiB given back")
        if not problems:
            console.print(f"{library}: sound", markup=False)
    if problems:
        leave_partial()


@settings_group.command()
def use(
    library: Annotated[Path, typer.Argument(help="The library folder.")],
    stage1: Annotated[
        str | None,
        typer.Option(help="Folder of a trained spr-stage1 model, demo, or none for the mean of the frames."),
    ] = None,
    refiner: Annotated[
        str | None,
        typer.Option(help="Folder of a trained reel, spr-clip or reloclnet model, demo, or none."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Take a model that does not say what it was trained on.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Search with trained models from now on; they are copied into the library. `none` goes back.

    `demo` is what moviola carries for libraries of the encoder demo (a folder of that name: `./demo`).
    Without an option it only says what is in use.

    Example: `moviola library use films --stage1 models/stage1 --refiner models/reel`

    Example: `moviola library use demo-library --stage1 demo --refiner demo`
    """
    from moviola.search import Library

    with Library(library, read_only=stage1 is None and refiner is None) as lib:
        if not lib.read_only:
            lib.use(stage1=stage1, refiner=refiner, force=force)
        models = lib.models_in_use()
    if json:
        emit_json(models)
        return
    for role, model in models.items():
        about = f"{model['name']} (revision {model['revision']})" if model else "none"
        console.print(f"{role:>7}  {about}", markup=False)


@app.command()
def doctor(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """What this machine has, what it lacks and what that means; and how the library stands.

    Example: `moviola doctor`
    """
    from moviola.cli.checkup import checkup

    findings = checkup(library)
    if json:
        emit_json([{"what": f.what, "ok": f.ok, "detail": f.detail} for f in findings])
    else:
        for finding in findings:
            mark = "[green]ok[/]" if finding.ok else "[red]!![/]"
            console.print(f"{mark}  {finding.what:<20} ", end="")
            console.print(finding.detail, markup=False)
    if not all(finding.ok for finding in findings):
        leave_partial()
