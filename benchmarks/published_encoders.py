"""Check published encoders from end to end, and measure what they cost here.

    python benchmarks/published_encoders.py timm/PE-Core-S-16-384 google/siglip2-base-patch16-224
    python benchmarks/published_encoders.py --random --out benchmarks/published_encoders.json

Each was fetched before (`moviola models pull NAME`). Of ten frames of the footage and ten texts, the features
are compared with the reference library's: open_clip's, where that is installed and the checkpoint is of its
format, else transformers'. Then the footage is indexed, and the queries of ``footage/queries.csv`` are asked:
for how many is the first moment of a film that shows it? What a frame costs is processor time, the least of
several calls, in the precision that moviola takes by itself, in a process of its own. The last line of each
model is its row of the table in docs/howto/encoder.md.

``--random`` takes random weights instead, of the same architecture; the reference is then the formulas of
``tests/worlds``, and what is found means nothing.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent / "footage"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "worlds"))

from clips import VIDEOS, rows

from measuring import alone, saying_errors
from moviola import Library
from moviola.encoders import ClipEncoder, available_models, load_encoder
from moviola.encoders.checkpoints import OPEN_CLIP_CONFIG, OPEN_CLIP_WEIGHTS
from moviola.encoders.formats.open_clip import TIMM_HEADS
from moviola.encoders.published import PUBLISHED
from moviola.errors import InvalidValue, MoviolaError
from moviola.media import sample_frames
from moviola.threads import compute_threads
from published_models import MODELS

Floats = NDArray[np.float32]

TEXTS = (
    "a photo of a car on the road", "bottles on a shelf", "a person walks through a shop", "a cartoon rabbit",
    "metal bolts", "a man with a hat", "fruit and vegetables", "two hands", "a street at night", "",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="hub ids or folders; by default all that are known here")
    parser.add_argument("--random", action="store_true", help="random weights of the same architecture")
    parser.add_argument("--videos", type=Path, default=VIDEOS, help="footage; by default the shared one")
    parser.add_argument("--no-search", action="store_true", help="compare and measure only")
    parser.add_argument("--frames", type=int, default=10, help="frames and texts to compare")
    parser.add_argument("--repeat", type=int, default=5, help="calls of which the fastest counts")
    parser.add_argument("--out", type=Path, help="add the results to this JSON file")
    options = parser.parse_args()
    with saying_errors():
        check_all(options)


def check_all(options: argparse.Namespace) -> None:
    """Check each model; print a row of the table for each, and keep the results."""
    for name in options.names or MODELS:
        if options.random and name not in MODELS:
            raise InvalidValue(f"{name}: its architecture is not known here; known are {', '.join(MODELS)}")
        with TemporaryDirectory() as folder:
            where = alone(_made, name, folder) if options.random else name
            found = {"random": options.random, **alone(cost, where, options)}
            found |= alone(compared, where, name, options)
            if not options.no_search:
                found |= alone(searched, where, options.videos)
        print(json.dumps({"name": name, **found}))
        print(row_of(name, found), flush=True)
        if options.out:
            known = json.loads(options.out.read_text()) if options.out.is_file() else {}
            options.out.write_text(json.dumps(known | {name: found}, indent=2) + "\n")


def row_of(name: str, found: Mapping[str, Any]) -> str:
    """A row of the table in docs/howto/encoder.md, of what is known, counted and measured."""
    known = next((model for model in PUBLISHED if model.name == name), None)
    said = (known.architecture, known.quality, known.languages, known.licence) if known else ("", "", "", "")
    architecture, quality, languages, licence = said
    counted = (f"{known.parameters}", f"{known.work:.1f}") if known else ("", "")
    cost = (
        (f"{found['frame_ms']:.0f}", f"{found['text_ms']:.0f}", f"{found['megabytes']}")
        if found
        else ("",) * 3
    )
    return "| " + " | ".join((f"`{name}`", architecture, *counted, quality, languages, licence, *cost)) + " |"


def _made(name: str, folder: str) -> str:
    return str(MODELS[name].make(Path(folder)))


def cost(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Milliseconds of a frame and of a text, and megabytes of the process."""
    before = _megabytes()
    encoder = load_encoder(name)
    frames = footage(options.videos, encoder, 16)
    encoder.encode_frames(frames)  # plans, or opens the plan
    times = [_seconds(lambda: encoder.encode_frames(frames)) / len(frames) for _ in range(options.repeat)]
    encoder.encode_text(["warm"])
    texts = [_seconds(partial(encoder.encode_text, [text])) for text in TEXTS]
    return {
        "frame_ms": round(1000 * min(times), 1), "text_ms": round(1000 * min(texts), 1),
        "megabytes": round(_megabytes() - before), "precision": encoder.precision, "device": encoder.device,
        "threads": compute_threads(),
    }  # fmt: skip


def _seconds(call: Any) -> float:
    """Processor time, of all threads."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def _megabytes() -> float:
    """Most memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def footage(videos: Path, encoder: Any, count: int) -> NDArray[np.uint8]:
    """Frames of different films in the encoder's size."""
    found: list[NDArray[np.uint8]] = []
    for path in sorted(videos.glob("*.m*")):
        if len(found) == count:
            break
        try:
            with sample_frames(path, rate=0.5, size=encoder.frame_size) as frames:
                found += [frame.image for frame in frames][:2]
        except MoviolaError:
            continue  # some of the footage is damaged on purpose
    return np.array(found[:count])


def compared(where: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The least cosines with the reference's features, in 32 bits; and whether tokens are the same."""
    encoder = load_encoder(where, device="cpu", precision="fp32")
    assert isinstance(encoder, ClipEncoder)
    frames, texts = footage(options.videos, encoder, options.frames), TEXTS[: options.frames]
    if options.random:
        reference, theirs = by_formulas(Path(where), name, encoder, frames, texts)
    elif (Path(_folder(where)) / OPEN_CLIP_CONFIG).is_file():
        reference, theirs = by_open_clip(where, frames, texts)
    else:
        reference, theirs = by_transformers(_folder(where), encoder, frames, texts)
    return {
        "reference": reference,
        "frame_cosine": _least_cosine(encoder.encode_frames(frames), theirs[0]),
        "text_cosine": _least_cosine(encoder.encode_text(texts), theirs[1]),
    }


def _least_cosine(ours: Floats, theirs: Floats) -> float:
    ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    return round(float(((ours * theirs).sum(1) / lengths).min()), 8)


def _folder(name: str) -> str:
    return next((model.folder for model in available_models() if model.name == name), name)


def by_open_clip(
    name: str, frames: NDArray[np.uint8], texts: Sequence[str]
) -> tuple[str, tuple[Floats, Floats]]:
    """Features by the open_clip library, which this project does not install."""
    try:
        import open_clip as library  # type: ignore[import-not-found]
        import torch
        from PIL import Image
    except ImportError as error:
        raise InvalidValue(
            f"{name}: its reference is open_clip ({error}); install open_clip_torch beside"
        ) from error
    where = f"local-dir:{name}" if Path(name).is_dir() else f"hf-hub:{name}"
    model, preprocess = library.create_model_from_pretrained(where)
    tokenize = library.get_tokenizer(where)
    with torch.inference_mode():
        pixels = torch.stack([preprocess(Image.fromarray(frame)) for frame in frames])
        found = (
            model.eval().encode_image(pixels).numpy(), model.encode_text(tokenize(list(texts))).numpy()
        )  # fmt: skip
    return f"open_clip {library.__version__}", found


def by_transformers(
    folder: str, encoder: ClipEncoder, frames: NDArray[np.uint8], texts: Sequence[str]
) -> tuple[str, tuple[Floats, Floats]]:
    """Features by transformers; its tokenizer, and pixels as the checkpoint's settings normalise them."""
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    siglip = model.config.model_type == "siglip"
    scale, shift = encoder._scale_and_shift
    pixels = torch.from_numpy((frames * scale + shift).transpose(0, 3, 1, 2).astype(np.float32))
    longest = {"max_length": 64, "padding": "max_length"} if siglip else {"max_length": encoder._longest}
    rows = [tokenizer(text, truncation=True, return_tensors="pt", **longest)["input_ids"] for text in texts]
    with torch.inference_mode():
        pictures = model.get_image_features(pixel_values=pixels).pooler_output.numpy()
        said = [model.get_text_features(input_ids=ids).pooler_output[0].numpy() for ids in rows]
    return f"transformers {transformers.__version__}", (pictures, np.array(said))


def by_formulas(
    folder: Path, name: str, encoder: ClipEncoder, frames: NDArray[np.uint8], texts: Sequence[str]
) -> tuple[str, tuple[Floats, Floats]]:
    """Features of random weights by the formulas of the tests, or by transformers where it has the format."""
    model = MODELS[name]
    if model.chinese:
        return by_transformers(str(folder), encoder, frames, texts)
    from safetensors.numpy import load_file

    from towers_by_formula import Formulas

    given, prefix = model.texts, "text." if model.more.get("custom_text") else ""
    siglip = given.get("pool_type") == "last"
    formulas = Formulas(load_file(folder / OPEN_CLIP_WEIGHTS), 1e-6 if siglip else 1e-5, "exact")
    pictures = []
    for frame in frames / 127.5 - 1:
        if model.timm:
            rotary = model.timm["class_token"]
            heads = TIMM_HEADS[model.vision["timm_model_name"].split("_")[3 if rotary else 1]]
            pictures.append(formulas.timm_frame(frame, heads, pool_heads=8 if rotary else 0, rotary=rotary))
        else:
            pictures.append(formulas.clip_frame(frame, model.vision["width"] // model.vision["head_width"]))
    said = []
    for ids in encoder._tokenize(texts):
        if model.hf:
            mean = formulas.bert_states("text.transformer.", ids, 12, 2).mean(0)
            said.append(formulas.linear("text.proj.2", formulas.gelu(formulas.linear("text.proj.0", mean))))
        else:
            place = -1 if siglip else int(np.argmax(ids))
            said.append(formulas.clip_text(ids, given["heads"], place, prefix=prefix, causal=not siglip))
    return "formulas", (np.array(pictures, np.float32), np.array(said, np.float32))


def searched(name: str, videos: Path) -> dict[str, Any]:
    """For how many queries the first moment is of a film that shows it."""
    files = {row["clip"]: row["file"] for row in rows("clips.csv")}
    with TemporaryDirectory() as folder, Library(Path(folder) / "library", encoder=name) as library:
        library.index(videos, ocr=False)
        queries, right = rows("queries.csv"), 0
        for row in queries:
            wanted = {Path(files[clip]).stem for clip in row["clips"].split()}
            right += any(
                found.video_id in wanted for found in library.search(row["query"], top_k=1, by="visual")
            )
        return {"queries": len(queries), "right_first": right, "films": len(library)}


if __name__ == "__main__":
    main()
