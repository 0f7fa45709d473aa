"""What keeping a library costs: files that move, watching while nothing happens, a file that arrives, stills.

    python benchmarks/upkeep.py [--videos FOLDER] [--files 10000] [--seconds 60]

Printed as JSON, and written to `benchmarks/upkeep.json`; `docs/howto/library.md` shows the figures. Needs
`moviola[watch]`. Processor time is read from `/proc`, so Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from moviola.library import IngestReport
from moviola.library.ingest.watching import Watcher, WatchOptions
from moviola.media import write_video
from moviola.search import Library

HERE = Path(__file__).resolve().parent
VIDEOS = HERE.parents[1] / "shared" / "videos"
ENCODER = "conse-lite1"
FOOTAGE = ("intel_car-detection.mp4", "moviepy_big_buck_bunny_0_30.webm", "moviepy_chaplin.mp4")
MOVED = 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="folder of real files")
    parser.add_argument("--files", type=int, default=10_000, help="files that are watched")
    parser.add_argument("--seconds", type=float, default=60.0, help="of watching while nothing happens")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name, measure in (
        ("moved", moved),
        ("watched", lambda work: watched(work, options.files, options.seconds)),
        ("arrived", lambda work: arrived(work, options.videos)),
        ("stills", lambda work: stills(work, options.videos)),
    ):
        with tempfile.TemporaryDirectory() as scratch:
            results[name] = measure(Path(scratch))
        print(json.dumps({name: results[name]}), flush=True)
    (HERE / "upkeep.json").write_text(json.dumps(results, indent=1) + "\n")


def moved(work: Path) -> dict[str, Any]:
    """Rename a thousand files, spread over other folders, half of them with subtitles; index again."""
    small_films(work / "films", MOVED)
    with Library(work / "library", encoder=ENCODER) as library:
        library.index(work / "films", ocr=False)
        for number, path in enumerate(sorted((work / "films").glob("*/*.mp4"))):
            target = work / "films" / f"moved-{number % 7}" / f"renamed-{number}.mp4"
            target.parent.mkdir(exist_ok=True)
            path.rename(target)
            if path.with_suffix(".srt").is_file():
                path.with_suffix(".srt").rename(target.with_suffix(".srt"))
        began = time.monotonic()
        report = library.index(work / "films", ocr=False)
        return {
            "files": MOVED,
            "seconds": round(time.monotonic() - began, 2),
            "moved": len(report.moved),
            "encoded": len(report.added) + len(report.updated),
            "frames encoded": report.frames,
        }


def watched(work: Path, files: int, seconds: float) -> dict[str, Any]:
    """Processor time of watching while nothing happens, by reports and by polling, and of one look."""
    small_films(work / "films", files)
    results: dict[str, Any] = {"files": files, "watched for seconds": seconds}
    with Library(work / "library", encoder="none", sentence_encoder="none") as library:
        library.index(work / "films")
        began = time.process_time()
        library.index(work / "films")
        results["processor seconds of one look"] = round(time.process_time() - began, 2)
    for name, polling in (("reported by the system", False), ("polled", True)):
        results[f"share of a core, {name}"] = round(idle_share(work, seconds, polling=polling), 5)
    return results


def idle_share(work: Path, seconds: float, *, polling: bool) -> float:
    """Share of a core that a watcher takes in a process of its own, once it has looked at everything."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom moviola.search import Library\n"
        "from moviola.library.ingest.watching import Watcher, WatchOptions\n"
        "def index(*sources, **options):\n"
        "    report = library.index(*sources, **options)\n    print(len(report.unchanged), flush=True)\n"
        "    return report\n"
        f"with Library(Path({str(work / 'library')!r})) as library:\n"
        f"    Watcher(index, library.folder, [Path({str(work / 'films')!r})], "
        f"WatchOptions(force_polling={polling})).run()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # the first look is over
        time.sleep(15)  # the system's notices are set up
        before = processor_seconds(process.pid)
        time.sleep(seconds)
        return (processor_seconds(process.pid) - before) / seconds
    finally:
        process.kill()
        process.wait()


def processor_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def arrived(work: Path, videos: Path) -> dict[str, Any]:
    """Seconds from a file's arrival in a watched folder until it is searched, beside those of indexing it."""
    results: dict[str, Any] = {}
    (work / "films").mkdir()
    shutil.copy(videos / FOOTAGE[2], work / "films")
    with Library(work / "library", encoder=ENCODER) as library:
        library.index(work / "films")
        with watching(library, work / "films"):
            for name in FOOTAGE[:2]:
                began = time.monotonic()
                shutil.copy(videos / name, work / "films")
                wait_until(partial(is_in, library, Path(name).stem))
                results[name] = {"seconds until it is found": round(time.monotonic() - began, 2)}
        library.remove([Path(name).stem for name in FOOTAGE[:2]])
        library.compact()
        for name in FOOTAGE[:2]:
            began = time.monotonic()
            library.index(work / "films" / name)
            results[name]["seconds of indexing"] = round(time.monotonic() - began, 2)
    return results


@contextmanager
def watching(library: Library, folder: Path) -> Iterator[None]:
    """A watcher of a folder in a thread, which has looked once."""
    looked = threading.Event()

    def index(*sources: Path, **options: Any) -> IngestReport:
        report = library.index(*sources, **options)
        looked.set()
        return report

    watcher = Watcher(index, library.folder, [folder], WatchOptions())
    thread = threading.Thread(target=watcher.run)
    thread.start()
    looked.wait()
    time.sleep(2)
    try:
        yield
    finally:
        watcher.stop.set()
        thread.join()


def is_in(library: Library, video_id: str) -> bool:
    return any(video.video_id == video_id for video in library.videos())


def wait_until(true: Callable[[], object]) -> None:
    while not true():
        time.sleep(0.02)


def stills(work: Path, videos: Path) -> dict[str, Any]:
    """Bytes of small stills and fingerprints beside those of features, of an hour of footage."""
    (work / "films").mkdir()
    for name in FOOTAGE:
        shutil.copy(videos / name, work / "films")
    with Library(work / "library", encoder=ENCODER) as library:
        library.index(work / "films", ocr=False)
        hours = sum(video.duration for video in library.videos()) / 3600
        frames = sum(video.frames.count for video in library.catalogue.videos() if video.frames)
        settings = library.store.settings
        features = frames * 2 * (settings.frame_dim + settings.picture_dim)
        rows = library.store.stills._rows
        kept = rows("SELECT sum(length(picture)) FROM stills")[0][0]
        prints = rows("SELECT sum(length(times) + length(frames)) FROM timed_fingerprints")[0][0]
    return {
        "MB an hour of features": round(features / hours / 1e6, 2),
        "MB an hour of stills": round(kept / hours / 1e6, 2),
        "MB an hour of fingerprints": round(prints / hours / 1e6, 2),
    }


def small_films(folder: Path, count: int) -> None:
    """Videos of a second, each with another content, 500 in a folder, every second one with subtitles."""
    generator = np.random.default_rng(0)
    folder.mkdir()
    template = folder / "template.mp4"
    write_video(template, iter(generator.integers(0, 255, (5, 36, 64, 3)).astype(np.uint8)), rate=5)
    data = template.read_bytes()
    template.unlink()
    for number in range(count):
        place = folder / f"folder-{number // 500}"
        place.mkdir(exist_ok=True)
        # A box that players pass over makes the content another one.
        free = (24).to_bytes(4, "big") + b"free" + number.to_bytes(16, "big")
        (place / f"film-{number}.mp4").write_bytes(data + free)
        if number % 2:
            (place / f"film-{number}.srt").write_text(f"1\n00:00:00,000 --> 00:00:01,000\nfilm {number}\n")


if __name__ == "__main__":
    main()
