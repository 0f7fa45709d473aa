"""Measures of moment retrieval, as the papers report them: exact, fast, one definition each.

Examples:
    >>> from moviola.study.measures import Qrels, Run, evaluate
    >>> qrels = Qrels.from_dict({"7": [{"video_id": "beach", "start": 0, "end": 10, "relevance": 3}]})
    >>> run = Run.from_dict({"7": [
    ...     {"video_id": "harbour", "start": 0, "end": 10, "score": 0.9},
    ...     {"video_id": "beach", "start": 1, "end": 10, "score": 0.4},
    ... ]})
    >>> evaluate(run, qrels, ["nDCG@10,IoU>=0.5", "R@1,IoU>0.5"]).measures  # doctest: +ELLIPSIS
    {'nDCG@10,IoU>=0.5': 0.630929..., 'R@1,IoU>0.5': 0.0}

Conventions
    Times are seconds. A moment is a half-open span of one video; overlap is temporal intersection over union
    (IoU) in [0, 1], and moments of two videos never overlap. Query ids are text (``7`` is ``"7"``). A
    :class:`Run` is ranked by falling score, equal scores in the order given, unless a file's format says that
    the list order is the ranking (TVR submissions). Relevance is graded, >= 0; moments of relevance > 0 are
    the ground truth of measures without grades. A run shorter than k has no further hits.

    Every judged query with a relevant moment counts; one without predictions scores 0; queries missing from
    the run or not judged are reported. Measures of :mod:`moviola.study.measures.no_answer` also count queries
    whose judgements hold no relevant moment. The presets ``tvr_ranking`` and ``spr`` leave out what the two
    releases leave out and use their overlap sign for nDCG, whatever sign the name carries (:class:`Preset`).

    NaN, infinite numbers and ``end <= start`` are refused with the row named. Moments of zero length, which
    the published evaluators let through, are accepted under the presets and overlap nothing.

Measures
    ``nDCG@k,IoU>=μ``: greedy one-to-one matching in order of rank, each prediction takes the free judged
    moment of its video with the highest IoU if that reaches μ; gain 2^relevance - 1, discount log2(rank + 1);
    divided by the same sum over the k best judged moments. [1]
    ``DCG@k,IoU>=μ``: its numerator. ``DCG@k``: gain best IoU, discount log2(rank + 1), no matching. [2]
    ``R@k,IoU>θ``: 1 if one of the first k reaches the overlap. The AxIoU paper reads >, TVR, DiDeMo and
    QVHighlights read >=; the name says which. [2, 3, 4]
    ``AP@k,IoU>=θ``: mean over ranks 1..k of the precision there (not the usual AP). [2]
    ``AxIoU@k``: mean over ranks 1..k of the best IoU so far; a shorter list carries its best on. [2]
    ``AUROC``, ``Rej-F1``, ``G-mIoU@k``, ``mR@k``, ``mR+@k``, ``mIoU@k``, ``mIoU+@k``: queries with no
    answer, one or several, see :mod:`moviola.study.measures.no_answer`. [5]
    :func:`tvr_recall`, :func:`qvhighlights`: the two evaluators, whole. :func:`temporal_nms`: suppression.

References
    [1] TVR-Ranking: imprecise queries, graded relevance (section 4), and SPR for its preset.
    [2] Togashi et al., "AxIoU: an axiomatically justified measure for video moment retrieval", CVPR 2022.
    [3] Lei et al., "TVR: a large-scale dataset for video-subtitle moment retrieval", ECCV 2020.
    [4] Lei et al., "QVHighlights: detecting moments and highlights in videos via natural language queries",
    2021.
    [5] "Retrieving Any Relevant Moments: Benchmark and Models for Generalized Moment Retrieval", 2026.
"""

from moviola.study.measures.evaluation import Results, evaluate
from moviola.study.measures.input_formats import (
    QRELS_FORMATS,
    RUN_FORMATS,
    ranks_disagree,
    read_qrels,
    read_run,
)
from moviola.study.measures.measure_names import Measure
from moviola.study.measures.no_answer import auroc, auroc_interval, refused_share, rejection_f1
from moviola.study.measures.output_formats import WRITERS, write_qrels, write_run
from moviola.study.measures.presets import PRESETS, Preset
from moviola.study.measures.qrels_and_run import Qrels, Run, query_name, temporal_nms
from moviola.study.measures.qvhighlights import qvhighlights, read_qvhighlights
from moviola.study.measures.significance import (
    Comparison,
    bootstrap_interval,
    compare,
    permutation_test,
    t_test,
)
from moviola.study.measures.tvr import (
    read_tvr_files,
    read_tvr_submission,
    read_tvr_truth,
    tvr_recall,
    unmatched_queries,
)
from moviola.temporal import overlap, suppress

__all__ = [
    "PRESETS", "QRELS_FORMATS", "RUN_FORMATS", "WRITERS", "Comparison", "Measure", "Preset",
    "Qrels", "Results", "Run", "auroc", "auroc_interval", "bootstrap_interval", "compare", "evaluate",
    "overlap", "permutation_test", "query_name", "qvhighlights", "ranks_disagree",
    "read_qrels", "read_qvhighlights", "read_run", "read_tvr_files", "read_tvr_submission", "read_tvr_truth",
    "refused_share", "rejection_f1", "suppress", "t_test", "temporal_nms", "tvr_recall", "unmatched_queries",
    "write_qrels", "write_run",
]  # fmt: skip
