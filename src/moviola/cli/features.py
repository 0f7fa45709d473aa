"""``moviola features``: feature files of data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, leave_partial, note
from moviola.errors import NotFound

features = typer.Typer(help="Feature files of data sets: converting and checking them.", no_args_is_help=True)
app.add_typer(features, name="features")

SEGMENT_SECONDS = 4.0
"""A segment's length in SPR."""

SourceArgument = Annotated[
    Path,
    typer.Argument(help="HDF5 file, .safetensors file, or a folder of .npy, .safetensors or our shards."),
]


@features.command("convert")
def convert_(
    source: SourceArgument,
    out: Annotated[Path, typer.Option(help="A new folder for the shards.")],
    json: JsonOption = False,
) -> None:
    """Convert feature files into memory-mapped half-precision shards.

    Example: `moviola features convert tvr_i3d.hdf5 --out features/i3d`

    From Python: `moviola.features.convert`.
    """
    from moviola.features import convert, open_features

    made = convert(open_features(source), out)
    rows = sum(made.shape(key)[0] for key in made.keys())  # noqa: SIM118 - no mapping
    if json:
        emit_json({"keys": len(made.keys()), "rows": rows, "dim": made.dim, "out": str(out)})
    else:
        console.print(f"{out}: {len(made.keys()):,} keys, {rows:,} rows of {made.dim}")


@features.command("check")
def check(
    source: SourceArgument,
    annotations: Annotated[Path, typer.Option(help="An annotation file.")],
    kind: Annotated[str, typer.Option(help="Its data set, as `moviola dataset stats` takes it.")],
    seconds: Annotated[float, typer.Option(help="Length of one feature row in seconds (1.5 for TVR's I3D).")],
    dim: Annotated[int | None, typer.Option(help="Expected dimension; without it, what most have.")] = None,
    durations: Annotated[Path | None, typer.Option(help="File of video durations.")] = None,
    json: JsonOption = False,
) -> None:
    """Check lengths and dimensions of features against an annotation; exit code 3 where something is wrong.

    Example: `moviola features check i3d.h5 --annotations tvr_val_release.jsonl --kind tvr --seconds 1.5`

    From Python: `moviola.datasets.feature_check.check_features`.
    """
    from collections import Counter

    from moviola.datasets.feature_check import check_features
    from moviola.datasets.readers import read_annotations
    from moviola.features import open_features

    flaws = check_features(
        open_features(source), read_annotations(annotations, kind, durations), seconds, dim=dim
    )
    if json:
        emit_json({"flaws": [{"kind": flaw.kind, "where": flaw.where} for flaw in flaws]})
    elif not flaws:
        console.print(f"{source}: fits {annotations}")
    else:
        for name, count in Counter(flaw.kind for flaw in flaws).items():
            some = [flaw.where for flaw in flaws if flaw.kind == name][:5]
            more = ", …" if count > len(some) else ""
            note(f"{name}: {count} ({', '.join(some)}{more})")
    if flaws:
        leave_partial()


@features.command("from-library")
def from_library(
    library: Annotated[Path, typer.Argument(help="A library with a visual encoder.")],
    annotations: Annotated[
        list[Path], typer.Option("--annotations", help="TVR-Ranking pair files; their queries are encoded.")
    ],
    out: Annotated[Path, typer.Option(help="A new folder for the features.")],
    json: JsonOption = False,
) -> None:
    """Features to train on: a library's frames and subtitles, and the queries of annotation files.

    Example: `moviola features from-library lib --annotations world/train_top20.json --annotations
    world/val.json --out features`

    From Python: `moviola.library.export_features`; `moviola.training.experiment.train_model` needs no export.
    """
    from moviola.datasets.readers import ranked_rows
    from moviola.library import LibraryStore, export_features

    texts = [text for path in annotations for _, _, text, _ in ranked_rows(path)]
    with LibraryStore(library, read_only=True) as store:
        made = export_features(store, texts, out)
    about, clips = made.facts, int(made.videos().counts.sum())
    found = {
        "videos": len(made.durations), "frames": clips, "dim": about.visual_dim,
        "queries": len(dict.fromkeys(texts)), "subtitles": about.subtitle_dim,
        "clip_seconds": about.clip_seconds, "out": str(out),
    }  # fmt: skip
    if json:
        emit_json(found)
    else:
        console.print(
            f"{out}: {found['videos']:,} videos, {clips:,} frames of {about.visual_dim} every "
            f"{about.clip_seconds:g} s; {found['queries']:,} queries; subtitles of {about.subtitle_dim} each"
        )


@features.command("from-files")
def from_files(
    visual: Annotated[
        list[Path],
        typer.Option(help="Features of clips by video; repeat to join several, each brought to length 1."),
    ],
    queries: Annotated[Path, typer.Option(help="Features of tokens by query (see --key).")],
    annotations: Annotated[
        list[Path], typer.Option(help="Pair files, or TVR JSON lines for desc_id; their queries are taken.")
    ],
    durations: Annotated[
        Path, typer.Option(help="video_corpus.json, tvr_video2dur_idx.json, or JSON {video: seconds}.")
    ],
    encoder: Annotated[str, typer.Option(help="What the features are; models of others are refused.")],
    out: Annotated[Path, typer.Option(help="A new folder for the features.")],
    subtitles: Annotated[Path | None, typer.Option(help="Features of subtitles, a row a clip.")] = None,
    query_vectors: Annotated[
        Path | None,
        typer.Option(help="One vector a query, appended to its tokens; else their last row is its vector."),
    ] = None,
    key: Annotated[str, typer.Option(help="Keys of queries: query_id, desc_id or text.")] = "query_id",
    videos: Annotated[
        str | None, typer.Option(help="These videos: JSON file, or FILE:SPLIT; else all with a duration.")
    ] = None,
    clip_seconds: Annotated[float, typer.Option(min=1e-3, help="Seconds of a row; 1.5 for TVR.")] = 1.5,
    segment_clips: Annotated[
        int | None, typer.Option(min=1, help="Rows of a segment of stage 1; about 4 s by default.")
    ] = None,
    revision: Annotated[str, typer.Option(help="Version of the features, like --encoder.")] = "1",
    raw: Annotated[
        bool, typer.Option("--raw", help="Models take rows as they are, not brought to length 1.")
    ] = False,
    tokens: Annotated[
        int | None, typer.Option(min=2, help="Keep so many rows of a query; the releases keep 30.")
    ] = None,
    slack: Annotated[
        int, typer.Option(min=0, help="Streams may differ by so many rows; the video is cut to the shorter.")
    ] = 0,
    json: JsonOption = False,
) -> None:
    """Features to train on, from published feature files: HDF5, or whatever `moviola features convert` reads.

    The last row of a query is its sentence vector, for the models that take one (stage 1 of SPR, SPR_CLIP):
    the file's own last row, as in files of CLIP's tokens or of one vector a query, unless --query-vectors
    names another file, by the same keys. Models that read tokens read it as the last token.

    XML and ReLoCLNet were published for rows of length 1, which is the default; stage 1 of SPR, and subtitles
    and queries of CONQUER, for raw ones: --raw, with visual features that are normalised already.

    Example: `moviola features from-files --visual i3d.h5 --subtitles roberta_sub.h5 --queries roberta.h5
    --annotations train_top20.json --annotations val.json --annotations test.json --durations
    video_corpus.json --encoder i3d+roberta --tokens 30 --out features`

    From Python: `moviola.features.gathering.gather_features`.
    """
    from moviola.datasets.readers import read_query_keys, read_video_corpus
    from moviola.features.gathering import Published, PublishedFiles, gather_features
    from moviola.training.data import read_videos

    seconds = read_video_corpus(durations)
    chosen = read_videos(videos) if videos else list(seconds)
    if unknown := [name for name in chosen if name not in seconds]:
        raise NotFound(f"{durations}: no duration of {len(unknown):,} videos, the first {unknown[0]!r}")
    texts = read_query_keys(annotations, key)
    files = PublishedFiles(
        tuple(map(Published.open, visual)),
        Published.open(queries),
        Published.open(subtitles) if subtitles else None,
        Published.open(query_vectors) if query_vectors else None,
    )
    made = gather_features(
        files, out, queries=texts, key=key, durations={name: seconds[name] for name in chosen},
        clip_seconds=clip_seconds,
        segment_clips=segment_clips or max(1, round(SEGMENT_SECONDS / clip_seconds)),
        encoder=(encoder, revision), raw=raw, max_tokens=tokens, slack=slack,
    )  # fmt: skip
    about = made.folder.facts
    found = {
        "videos": len(chosen), "frames": made.clips, "dim": about.visual_dim, "queries": len(texts),
        "query_dim": about.query_dim, "subtitles": about.subtitle_dim, "clip_seconds": clip_seconds,
        "odd": list(made.odd), "out": str(out),
    }  # fmt: skip
    if made.odd:
        note(
            f"{len(made.odd):,} videos have over two rows more or less than their duration asks for, the "
            f"first {made.odd[0]!r}"
        )
    if json:
        emit_json(found)
    else:
        console.print(
            f"{out}: {found['videos']:,} videos, {made.clips:,} clips of {about.visual_dim} every "
            f"{clip_seconds:g} s; {found['queries']:,} queries of {about.query_dim}; subtitles of "
            f"{about.subtitle_dim} each"
        )
