"""Ask ffprobe when each picture of the reference footage is shown; the tests compare our times with that.

    python scripts/make_frame_times.py --footage ../shared/videos --out tests/find/footage/frame_times.json

Needs the ``ffprobe`` command, which the tests then do without. The file holds, by file name:

- ``sha256``: of the file;
- ``tick``: seconds that a unit of the numbers below lasts, as a fraction;
- ``first``: when the first picture is shown, in ticks after the video's zero, which is the stream's start
  time (for AVI: the first picture);
- ``steps``: ticks from each picture in order of display to the next, as [ticks, how often in a row] pairs;
- ``last``, ``longest``: ticks that the last picture in file order lasts (0: not said) and the longest one;
- ``damaged``: whether ffprobe found errors.

A file without a video stream, or with cover art only, has ``null`` in its place.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

SUBTITLES = {".srt", ".vtt", ".ass"}
ENTRIES = "stream=time_base,start_pts:frame=best_effort_timestamp,duration,pkt_duration"


def ask(path: Path) -> dict[str, Any] | None:
    """What ffprobe says of one file, None if it finds no video stream that is no cover art."""
    command = ["ffprobe", "-v", "error", "-select_streams", "V:0", "-show_entries", ENTRIES, "-of", "json"]
    done = subprocess.run([*command, f"file:{path}"], capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout or "{}")
    if not answer.get("streams"):
        return None
    (stream,) = answer["streams"]
    stamps = [int(frame["best_effort_timestamp"]) for frame in answer["frames"]]
    zero = min(stamps) if path.suffix == ".avi" else int(stream["start_pts"])
    durations = [int(frame.get("duration", frame.get("pkt_duration", 0))) for frame in answer["frames"]]
    shown = sorted(stamps)
    steps = [after - before for before, after in pairwise(shown)]
    return {
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "tick": stream["time_base"],
        "first": shown[0] - zero,
        "steps": [[ticks, len(list(run))] for ticks, run in groupby(steps)],
        "last": durations[-1],
        "longest": max(durations),
        "damaged": bool(done.stderr),
    }


def main() -> None:
    """Write the file: one line per video."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--footage", type=Path, required=True, help="folder with manifest.json and its files")
    parser.add_argument("--out", type=Path, default=Path("tests/find/footage/frame_times.json"))
    options = parser.parse_args()
    if shutil.which("ffprobe") is None:
        sys.exit("ffprobe is missing: install ffmpeg")
    entries = json.loads((options.footage / "manifest.json").read_text(encoding="utf-8"))
    names = sorted(e["file"] for e in entries if Path(e["file"]).suffix.lower() not in SUBTITLES)
    lines = [f"{json.dumps(name)}: {json.dumps(ask(options.footage / name))}" for name in names]
    options.out.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{options.out}: {len(names)} files")


if __name__ == "__main__":
    main()
