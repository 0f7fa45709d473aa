"""Sampling one frame a second: CPU seconds of ``moviola.media`` over those of the ffmpeg command line.

Both read the same files, made here from a moving test picture with noise, and give 224 x 224 RGB, one frame
a second. Each pair is measured one after the other, the order alternating; the table gives the median of the
ratios. ffmpeg is charged for its whole process, one thread; moviola from opening the file to the last frame
(an indexing run starts its interpreter once for all files). Memory is what the process grew by, at its peak.

    python benchmarks/decode.py --folder /tmp/films --pairs 5
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

WIDTH = HEIGHT = 224
_EACH_SECOND = "-force_key_frames expr:gte(t,n_forced)"


@dataclass(frozen=True)
class Material:
    """A film to measure on, and the ratio that it must not exceed."""

    name: str
    suffix: str
    height: int
    encode: str
    limit: float


def films() -> list[Material]:
    """Codecs and key frame distances in two sizes."""
    kinds = [
        ("H.264, GOP 250", "mp4", "libx264 -preset veryfast -g 250", 0.65),
        ("H.264, key each second", "mp4", f"libx264 -preset veryfast -g 250 {_EACH_SECOND}", 0.35),
        # Key frames at most 24 pictures apart fall anywhere between two samples.
        ("H.264, GOP 24", "mp4", "libx264 -preset veryfast -g 24", 0.65),
        ("HEVC, GOP 250", "mp4", "libx265 -preset superfast -x265-params log-level=none:keyint=250", 0.65),
        ("VP9", "webm", "libvpx-vp9 -deadline realtime -cpu-used 7 -b:v 3M -g 250", 1.05),
        ("AV1", "mp4", "libsvtav1 -preset 10 -crf 38 -g 250", 1.05),
        ("MPEG-4", "avi", "mpeg4 -q:v 4 -bf 2 -g 250", 1.05),
        ("MPEG-2", "ts", "mpeg2video -q:v 4 -bf 2 -g 15", 1.05),
    ]
    return [
        Material(f"{name}, {height}p", suffix, height, encode, limit)
        for height in (720, 1080)
        for name, suffix, encode, limit in kinds
    ]


def make(material: Material, folder: Path, seconds: int) -> Path:
    """Encode a film with the ffmpeg command line, unless it is there."""
    slug = "".join(sign if sign.isalnum() else "_" for sign in material.name)
    path = folder / f"{slug}_{seconds}s.{material.suffix}"
    if not path.exists():
        part = path.with_stem(path.stem + ".part")
        width = material.height * 16 // 9
        source = f"testsrc2=size={width}x{material.height}:rate=25:duration={seconds},noise=alls=6:allf=t"
        command = f"ffmpeg -v error -y -f lavfi -i {source} -pix_fmt yuv420p -c:v {material.encode}"
        environment = {**os.environ, "SVT_LOG": "0"}
        subprocess.run([*command.split(), str(part)], check=True, env=environment, stderr=subprocess.DEVNULL)
        part.rename(path)
    return path


def ffmpeg_seconds(path: Path) -> tuple[float, int]:
    """CPU seconds and frames of the command line."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    chain = f"fps=1:round=up,scale={WIDTH}:{HEIGHT}"
    command = f"ffmpeg -v error -threads 1 -filter_threads 1 -i {path} -an -vf {chain} -pix_fmt rgb24"
    done = subprocess.run([*command.split(), "-f", "rawvideo", "-"], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return used, len(done.stdout) // (WIDTH * HEIGHT * 3)


def moviola_seconds(path: Path) -> dict[str, float]:
    """What a fresh process measured of itself."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", str(path)], check=True, capture_output=True, text=True
    )
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def measure(path: Path) -> None:
    """Sample a film and print what it took, as JSON."""
    import time

    from moviola.media import sample_frames
    from moviola.types import FrameSize

    size = FrameSize(HEIGHT, WIDTH, fit="stretch")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, wall = time.process_time(), time.perf_counter()
    with sample_frames(path, rate=1.0, size=size) as stream:
        frames = sum(1 for _ in stream)
    used, wall = time.process_time() - began, time.perf_counter() - wall
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
    print(
        json.dumps({"cpu": used, "wall": wall, "frames": frames, "decoded": stream.decoded, "memory": grown})
    )


def main() -> None:
    """Print the table; leave with 1 if a ratio is above its limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("benchmarks/films"), help="where the films are kept"
    )
    parser.add_argument("--seconds", type=int, default=60, help="length of a film")
    parser.add_argument("--pairs", type=int, default=5, help="measurements of each film")
    parser.add_argument("--only", default="", help="only films whose name holds this")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    print(
        f"{'film':30}{'ratio':>7}{'range':>13}{'limit':>7}"
        f"{'ffmpeg s':>10}{'moviola s':>11}{'decoded':>9}{'MB':>6}"
    )
    exceeded = []
    for material in films():
        if options.only not in material.name:
            continue
        path = make(material, options.folder, options.seconds)
        ratios, theirs, ours = [], [], []
        for pair in range(options.pairs):
            first = moviola_seconds(path) if pair % 2 else None
            used, frames = ffmpeg_seconds(path)
            own = first or moviola_seconds(path)
            assert frames == own["frames"], f"{path}: ffmpeg gives {frames} frames, moviola {own['frames']}"
            ratios.append(own["cpu"] / used)
            theirs.append(used)
            ours.append(own)
        ratio = statistics.median(ratios)
        if ratio > material.limit:
            exceeded.append(material.name)
        print(
            f"{material.name:30}{ratio:7.2f}{min(ratios):8.2f}-{max(ratios):.2f}{material.limit:7.2f}"
            f"{statistics.median(theirs):10.2f}{statistics.median(own['cpu'] for own in ours):11.2f}"
            f"{ours[0]['decoded'] / (options.seconds * 25):9.0%}{max(own['memory'] for own in ours):6.0f}",
            flush=True,
        )
    if exceeded:
        sys.exit(f"above the limit: {', '.join(exceeded)}")


if __name__ == "__main__":
    main()
