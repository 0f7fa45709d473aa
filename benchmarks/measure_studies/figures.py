"""Figures of the studies, for print and screen: matplotlib, drawn without a display.

Every line has its own colour (Okabe and Ito's, distinct for the colour blind), marker and dash, so that a
figure survives a black-and-white printer. matplotlib is imported when a figure is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from measure_studies.statistics import SelfAgreement, bias_variance
from moviola.errors import MissingDependency
from moviola.study.measures.qrels_and_run import Floats, Integers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "bars", "bias_curves", "curves", "heatmap", "lines", "profiles", "rating_spread", "reading",
    "relevance_points", "save", "self_agreement_curves", "timelines",
]  # fmt: skip

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ("-", "--", "-.", ":")
STYLE: dict[Any, Any] = {
    "font.size": 9, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": "#DDDDDD", "grid.linewidth": 0.6, "axes.axisbelow": True,
    "legend.frameon": False, "lines.linewidth": 1.5, "lines.markersize": 4.5, "svg.hashsalt": "moviola",
    "figure.dpi": 200,
}  # fmt: skip


@contextmanager
def _style() -> Iterator[None]:
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingDependency("matplotlib is not installed", "studies") from None
    with mpl.rc_context(STYLE):
        yield


def _figure(
    width: float, height: float, rows: int = 1, columns: int = 1, *, heights: Sequence[float] = ()
) -> tuple[Figure, list[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(len(heights) or rows, columns, height_ratios=heights or None)
    return figure, list(np.atleast_1d(axes).ravel())


def _line(axes: Axes, number: int, x: Sequence[float], y: Sequence[float], label: str) -> None:
    axes.plot(
        x, y, label=label, color=COLOURS[number % len(COLOURS)], marker=MARKERS[number % len(MARKERS)],
        linestyle=DASHES[number // len(COLOURS) % len(DASHES)],
    )  # fmt: skip


def _legend(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper")


def save(figure: Figure, path: Path) -> list[Path]:
    """Write ``path`` as PNG (200 dots an inch) and SVG; returns both paths. The folder must exist."""
    with _style():
        paths = [path.with_suffix(suffix) for suffix in (".png", ".svg")]
        figure.savefig(paths[0], dpi=200)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def heatmap(names: Sequence[str], values: Floats, title: str) -> Figure:
    """Agreement between measures: (measures, measures) τ-b in [-1, 1], a number per cell, a dash for NaN."""
    with _style():
        side = 1.9 + 0.5 * len(names)
        figure, (axes,) = _figure(side + 0.9, side)
        axes.grid(visible=False)
        picture = axes.imshow(values, cmap="RdBu", vmin=-1, vmax=1)
        ticks = range(len(names))
        axes.set_xticks(ticks, names, rotation=45, ha="right", rotation_mode="anchor")
        axes.set_yticks(ticks, names)
        axes.spines[:].set_visible(False)
        for (row, column), value in np.ndenumerate(values):
            text = "–" if np.isnan(value) else f"{value:.2f}"
            colour = "white" if abs(value) > 0.6 else "black"
            axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=colour)
        axes.set_title(title)
        figure.colorbar(picture, ax=axes, label="Kendall's τ-b", shrink=0.8)
    return figure


def self_agreement_curves(found: Mapping[str, SelfAgreement], title: str) -> Figure:
    """Mean and variance of self-agreement over the size of the query subsets (figure 6)."""
    with _style():
        figure, (top, bottom) = _figure(7.2, 5.6, rows=2)
        for number, (name, curve) in enumerate(found.items()):
            _line(top, number, curve.sizes.tolist(), curve.mean.tolist(), name)
            _line(bottom, number, curve.sizes.tolist(), curve.variance.tolist(), name)
        top.set(ylabel="mean τ-b", title=title)
        bottom.set(ylabel="variance of τ-b", xlabel="queries in a subset")
        bottom.set_ylim(bottom=0)
        _legend(figure, top)
    return figure


def lines(
    x: Sequence[float], rows: Mapping[str, Sequence[float]], title: str, across: str, up: str
) -> Figure:
    """One line per row over common, numbered places."""
    with _style():
        figure, (axes,) = _figure(7.2, 3.8)
        for number, (name, values) in enumerate(rows.items()):
            _line(axes, number, x, values, name)
        axes.set(xlabel=across, ylabel=up, title=title)
        axes.set_xticks(list(x))
        _legend(figure, axes)
    return figure


def curves(rows: Mapping[str, Sequence[tuple[float, float]]], title: str, across: str, up: str) -> Figure:
    """One line per row, each over its own places: (place, value) in order."""
    with _style():
        figure, (axes,) = _figure(7.2, 4.4)
        for number, (name, points) in enumerate(rows.items()):
            _line(axes, number, [place for place, _ in points], [value for _, value in points], name)
        axes.set(xlabel=across, ylabel=up, title=title)
        axes.set_ylim(bottom=0)
        if rows:
            _legend(figure, axes)
    return figure


def profiles(
    columns: Sequence[str], rows: Mapping[str, Sequence[float]], title: str, across: str, up: str,
    *, legend: str = "",
) -> Figure:  # fmt: skip
    """One line per row over named columns: measures over systems, models over measures (figures 5 and 8)."""
    with _style():
        figure, (axes,) = _figure(max(8.0, 3 + 0.2 * len(columns)), 4.2)
        for number, (name, values) in enumerate(rows.items()):
            _line(axes, number, range(len(columns)), values, name)
        axes.axhline(0, color="#555555", linewidth=0.8)
        axes.set_xticks(range(len(columns)), columns, rotation=30, ha="right", rotation_mode="anchor")
        axes.set(xlabel=across, ylabel=up, title=title)
        _legend(figure, axes)
        figure.legends[0].set_title(legend)
    return figure


def bars(values: Mapping[str, float], title: str, across: str) -> Figure:
    """One horizontal bar per name, the number beside it; values in [0, 1]."""
    with _style():
        figure, (axes,) = _figure(6.4, 1.2 + 0.27 * len(values))
        drawn = axes.barh(list(values), list(values.values()), color=COLOURS[0], height=0.65)
        axes.bar_label(drawn, fmt="%.3f", padding=3, fontsize=8)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xlim(0, 1.08)
        axes.set(xlabel=across, title=title)
    return figure


def bias_curves(overlaps: Floats, noises: Sequence[float], iou: float) -> Figure:
    """Squared bias, variance and error of AxIoU@1 and R@1,θ over θ, a column a noise level (figure 10)."""
    with _style():
        figure, panels = _figure(7.6, 2.9, columns=len(noises))
        names = ("squared bias", "variance", "mean squared error")
        for axes, noise in zip(panels, noises, strict=True):
            for family, (measure, curves) in enumerate(bias_variance(overlaps, noise, iou).items()):
                for number, (name, curve) in enumerate(zip(names, curves, strict=True)):
                    label = f"{measure.replace('R@1', 'R@1,θ')} {name}"
                    axes.plot(overlaps, curve, color=COLOURS[number], linestyle=DASHES[family], label=label)
            axes.set(title=f"γ = {noise:g}", xlabel="θ", ylim=(-0.02, 0.62))
        panels[0].set_ylabel(f"one moment, true IoU {iou:g}")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def relevance_points(points: Mapping[str, tuple[Floats, Integers, Integers]], title: str) -> Figure:
    """Level over similarity and over rank; one colour per query (TVR-Ranking, figure 4).

    Args:
        points: by query similarity, rank from 1, and level from 0, (n,) each.
        title: above both panels.
    """
    with _style():
        figure, panels = _figure(8.0, 3.6, columns=2)
        for axes, column, across in zip(panels, (0, 1), ("similarity", "rank by similarity"), strict=True):
            for number, columns in enumerate(points.values()):
                # Queries lie beside each other, or those of one level would hide each other.
                level = columns[2] + 0.5 * (number + 0.5) / len(points) - 0.25
                axes.scatter(
                    columns[column], level, s=12,
                    color=COLOURS[number % len(COLOURS)], marker=MARKERS[number % len(MARKERS)],
                )  # fmt: skip
            axes.set_yticks(range(5))
            axes.set(xlabel=across, ylabel="relevance")
        figure.suptitle(title)
    return figure


def rating_spread(low_high: Floats, levels: Floats, title: str) -> Figure:
    """Shares of pairs by lowest and highest rating, (5, 5), and by final level, (5,) (its figure 5)."""
    with _style():
        figure, (left, right) = _figure(8.0, 3.6, columns=2)
        left.grid(visible=False)
        shown = np.where(np.tri(len(low_high), dtype=bool).T, low_high, np.nan)
        left.imshow(shown.T, cmap="Blues", vmin=0, origin="upper")
        for (low, high), share in np.ndenumerate(shown):
            if low <= high:
                colour = "white" if share > np.nanmax(shown) / 2 else "black"
                left.text(low, high, f"{share:.2%}", ha="center", va="center", fontsize=7.5, color=colour)
        left.set(xlabel="lowest rating", ylabel="highest rating", xticks=range(5), yticks=range(5))
        drawn = right.bar(range(len(levels)), levels, color=COLOURS[0], width=0.65)
        right.bar_label(drawn, labels=[f"{share:.1%}" for share in levels], padding=3, fontsize=8)
        right.grid(visible=False, axis="x")
        right.set(xlabel="final level", ylabel="share of pairs")
        figure.suptitle(title)
    return figure


Span = tuple[float, float] | None
"""Start and end in seconds, or nothing."""


def timelines(panels: Mapping[str, Sequence[tuple[str, Span, Span, float]]], title: str) -> Figure:
    """Predictions above truths, a line each in the time of their video; a panel per query.

    Args:
        panels: by title lines of label, found span, true span, and relevance of the true one in [0, 4].
        title: above all.
    """
    with _style():
        heights = [0.6 + 0.24 * len(rows) for rows in panels.values()]
        figure, axes = _figure(7.2, 0.8 + sum(heights), heights=heights)
        for panel, (name, rows) in zip(axes, panels.items(), strict=True):
            for place, (_, found, true, level) in enumerate(rows):
                for span, above, colour in ((found, -0.38, COLOURS[0]), (true, 0.02, COLOURS[4])):
                    if span is not None:
                        panel.broken_barh([(span[0], span[1] - span[0])], (place + above, 0.36), color=colour)
                if true is not None:
                    panel.text(true[1], place + 0.2, f" {level:g}", va="center", fontsize=7.5)
            panel.set_yticks(range(len(rows)), [label for label, *_ in rows], fontsize=7.5)
            panel.set(title=name, xlim=(0, None), ylim=(max(len(rows), 1) - 0.5, -0.5))
            panel.grid(visible=False, axis="y")
        axes[-1].set_xlabel(
            "seconds of the video; found (blue), and the true moment with its relevance (orange)"
        )
        figure.suptitle(title)
    return figure


def reading(
    tokens: Sequence[str],
    weights: Mapping[str, Sequence[float]],
    boundaries: Mapping[str, Sequence[float]],
    *,
    clip_seconds: float,
    true: Sequence[tuple[float, float]],
    title: str,
) -> Figure:
    """Weights of a query's tokens by stream, and confidence in boundaries over a video (PREM, figure 5).

    Args:
        tokens: names of the query's tokens.
        weights: by stream, one for each token.
        boundaries: by boundary, one for each clip.
        clip_seconds: length of a clip in seconds.
        true: start and end in seconds of the moments that answer the query, which are shaded.
        title: above all.
    """
    with _style():
        figure, (words, video) = _figure(8.0, 4.2, rows=2, heights=[0.35 * len(weights), 2.0])
        words.grid(visible=False)
        words.spines[:].set_visible(False)
        table = np.array(list(weights.values()))
        words.imshow(table, cmap="Reds", vmin=0, aspect="auto")
        for (row, column), share in np.ndenumerate(table):
            colour = "white" if share > table.max() * 0.6 else "black"
            words.text(column, row, f"{share:.2f}", ha="center", va="center", fontsize=6.5, color=colour)
        words.set_yticks(range(len(weights)), list(weights))
        words.set_xticks(range(len(tokens)), tokens, rotation=45, ha="right", rotation_mode="anchor")
        for start, end in true:
            video.axvspan(start, end, color=COLOURS[4], alpha=0.25, linewidth=0)
        for number, (name, curve) in enumerate(boundaries.items()):
            middle = (np.arange(len(curve)) + 0.5) * clip_seconds
            _line(video, number, middle.tolist(), curve, name)
        video.set(xlabel="seconds of the video (shaded: moments that answer)", ylabel="confidence")
        video.set_ylim(bottom=0)
        _legend(figure, video)
        figure.suptitle(title)
    return figure
