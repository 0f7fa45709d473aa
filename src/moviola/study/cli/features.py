"""``moviola features``: features of files, of data sets and of libraries."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

from typer import Argument, Option, Typer

from moviola.cli.app import JsonOption, command_group, leave_partial, note, show, some
from moviola.cli.options import DEFAULT_LIBRARY, LibraryOption, out_option
from moviola.errors import NotFound, counted
from moviola.study.cli import STUDIES

commands = Typer()
"""What this module adds to ``moviola``."""

features = command_group(
    "features",
    "Features: convert, check, export those of a library.",
    below=commands,
    panel=STUDIES,
)


def _array_of(source: Path) -> tuple[Path, str | None]:
    """The file or folder and the array of ``FILE:NAME``; a file that is there may have a colon."""
    path, _, name = str(source).rpartition(":")
    return (Path(path), name) if not source.exists() and path and Path(path).exists() else (source, None)


SEGMENT_SECONDS = 4.0  # a segment's length in SPR

SourceArgument = Annotated[
    Path,
    Argument(
        help="HDF5, .npz or .safetensors file, or a folder of .npy, .npz, .safetensors or shards; FILE:NAME "
        "takes one of several arrays of each video or query."
    ),
]


@features.command("convert")
def convert_(
    source: SourceArgument,
    out: Annotated[Path, out_option("New folder for the shards.")],
    json: JsonOption = False,
) -> None:
    """Convert feature files into memory-mapped half-precision shards.

    Example: `moviola features convert tvr_i3d.hdf5 --out features/i3d`

    With a group for each video: `moviola features convert anet.hdf5:c3d_features --out features/c3d`

    From Python: `moviola.features.convert`.
    """
    from moviola.features import convert, open_features

    path, inner = _array_of(source)
    made = convert(open_features(path, inner), out, origin=path)
    rows = sum(made.shape(key)[0] for key in made.keys())  # noqa: SIM118 - no mapping
    said = f"{out}: {counted(len(made.keys()), 'key')}, {counted(rows, 'row')} of {made.dim}"
    show(json, {"keys": len(made.keys()), "rows": rows, "dim": made.dim, "out": str(out)}, said)


@features.command("check")
def check(
    source: SourceArgument,
    annotations: Annotated[Path, Option(help="An annotation file.")],
    clip_seconds: Annotated[float, Option(help="Seconds per feature row (1.5 for TVR's I3D).")],
    json: JsonOption = False,
) -> None:
    """Check lengths and dimensions of features against annotations; exit code 3 if something is wrong.

    Example: `moviola features check i3d.h5 --annotations tvr_val_release.jsonl
    --clip-seconds 1.5`

    From Python: `moviola.study.datasets.feature_check.check_features`.
    """
    from moviola.features import open_features
    from moviola.study.datasets.feature_check import check_features
    from moviola.study.datasets.readers import read_annotations

    found = read_annotations(annotations)
    flaws = check_features(open_features(*_array_of(source)), found, clip_seconds)
    show(json, flaws, *([] if flaws else [f"{source}: fits {annotations}"]))
    for name, count in Counter(flaw.kind for flaw in flaws).items():
        if not json:
            note(f"{name}: {count} ({some([flaw.where for flaw in flaws if flaw.kind == name])})")
    if flaws:
        leave_partial()


@features.command("from-library")
def from_library(
    annotations: Annotated[list[Path], Option(help="Pair file whose queries are encoded; repeatable.")],
    out: Annotated[Path, out_option("New folder for the features.")],
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Export features to train on: a library's frames and subtitles, and the queries of annotation files.

    Example: `moviola features from-library --library lib --annotations world/train_top20.json --annotations
    world/val.json --out features`

    From Python: `moviola.library.export_features`; `moviola.study.training.experiment.Experiment` needs no
    export.
    """
    from moviola.library import LibraryStore, export_features
    from moviola.study.datasets.readers import ranked_queries

    texts = [text for path in annotations for text in ranked_queries(path)]
    with LibraryStore(library, read_only=True) as store:
        made = export_features(store, texts, out)
    about, videos, queries = made.facts, len(made.durations), len(set(texts))
    frames = int(made.videos().counts.sum())
    found = {
        "videos": videos, "frames": frames, "dim": about.visual_dim, "queries": queries,
        "subtitles": about.subtitle_dim, "clip_seconds": about.clip_seconds, "out": str(out),
    }  # fmt: skip
    show(
        json, found,
        f"{out}: {counted(videos, 'video')}, {counted(frames, 'frame')} of {about.visual_dim} every "
        f"{about.clip_seconds:g} s; {counted(queries, 'query')}; subtitles of {about.subtitle_dim} each",
    )  # fmt: skip


@features.command("from-files")
def from_files(
    visual: Annotated[
        list[Path], Option(help="Features of clips by video; several are normalised and joined.")
    ],
    queries: Annotated[
        Path, Option(help="Features of tokens by query: by query_id, text, or TVR's desc_id.")
    ],
    annotations: Annotated[
        list[Path], Option(help="Pair file with the queries, or TVR JSON lines for desc_id; repeatable.")
    ],
    durations: Annotated[
        Path, Option(help="video_corpus.json, tvr_video2dur_idx.json, or {video: seconds}.")
    ],
    encoder: Annotated[
        str,
        Option(
            metavar="NAME[@REVISION]",
            help="Name and version of the features; models accept those they learned from.",
        ),
    ],
    out: Annotated[Path, out_option("New folder for the features.")],
    subtitles: Annotated[Path | None, Option(help="Features of subtitles, a row per clip.")] = None,
    query_vectors: Annotated[
        Path | None,
        Option(help="One vector per query, appended to its tokens; else their last row is its vector."),
    ] = None,
    videos: Annotated[str | None, Option(help="Videos: JSON file, or FILE:SPLIT; by default all.")] = None,
    clip_seconds: Annotated[
        float, Option(min=1e-3, help="Seconds per feature row (1.5 for TVR's I3D).")
    ] = 1.5,
    segment_clips: Annotated[
        int | None, Option(min=1, help="Rows per segment; by default about 4 s.")
    ] = None,
    raw: Annotated[bool, Option("--raw", help="Keep rows as they are, not normalised.")] = False,
    max_tokens: Annotated[
        int | None, Option(min=2, help="Rows to keep per query; 30 in the releases.")
    ] = None,
    slack: Annotated[int, Option(min=0, help="Rows by which streams may differ; the shorter counts.")] = 0,
    json: JsonOption = False,
) -> None:
    """Gather features to train on from published files: HDF5, or any that `moviola features convert` reads;
    FILE:NAME takes one of several arrays of each video or query.

    The last row of a query is its sentence vector, for models that need one (stage 1 of SPR, SPR_CLIP): the
    file's own last row, as in files of CLIP's tokens or of one vector per query, unless --query-vectors names
    another file with the same keys. Models of tokens read it as the last token.

    XML and ReLoCLNet were published for normalised rows, the default; stage 1 of SPR, and subtitles and
    queries of CONQUER, for raw ones: --raw, with visual features that are normalised already.

    Example: `moviola features from-files --visual i3d.h5 --subtitles roberta_sub.h5 --queries roberta.h5
    --annotations train_top20.json --annotations val.json --annotations test.json --durations
    video_corpus.json --encoder i3d+roberta --max-tokens 30 --out features`

    From Python: `moviola.features.gathering.gather_features`.
    """
    from moviola.features.gathering import Published, PublishedFiles, gather_features
    from moviola.study.datasets.readers import (
        kind_of_keys,
        read_query_keys,
        read_video_corpus,
        read_videos,
    )

    seconds = read_video_corpus(durations)
    chosen = read_videos(videos) if videos else list(seconds)
    if unknown := [name for name in chosen if name not in seconds]:
        raise NotFound(f"{durations}: no duration of {counted(len(unknown), 'video')}: {some(unknown)}")
    files = PublishedFiles(
        tuple(Published.open(*_array_of(path)) for path in visual),
        Published.open(*_array_of(queries)),
        Published.open(*_array_of(subtitles)) if subtitles else None,
        Published.open(*_array_of(query_vectors)) if query_vectors else None,
    )
    key = kind_of_keys(annotations[0], frozenset(files.queries.features.keys()))
    texts = read_query_keys(annotations, key)
    name, _, revision = encoder.partition("@")
    made = gather_features(
        files, out, queries=texts, key=key, durations={name: seconds[name] for name in chosen},
        clip_seconds=clip_seconds,
        segment_clips=segment_clips or max(1, round(SEGMENT_SECONDS / clip_seconds)),
        encoder=(name, revision or "1"), raw=raw, max_tokens=max_tokens, slack=slack,
    )  # fmt: skip
    about = made.folder.facts
    found = {
        "videos": len(chosen), "frames": made.clips, "dim": about.visual_dim, "queries": len(texts),
        "query_dim": about.query_dim, "subtitles": about.subtitle_dim, "clip_seconds": clip_seconds,
        "odd": made.odd, "out": str(out),
    }  # fmt: skip
    if made.odd:
        note(f"more than two rows from their duration: {counted(len(made.odd), 'video')} ({some(made.odd)})")
    show(
        json, found,
        f"{out}: {counted(len(chosen), 'video')}, {counted(made.clips, 'clip')} of {about.visual_dim} every "
        f"{clip_seconds:g} s; {counted(len(texts), 'query')} of {about.query_dim}; subtitles of "
        f"{about.subtitle_dim} each",
    )  # fmt: skip
