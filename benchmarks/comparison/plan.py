"""Models to train for the comparison: the rows, at several sizes of effort.

Each model has the best of three settings, by val of other films, tried once (``results/develop-*.json``). On
the films that are reported on nothing is chosen but the weights of a training, by val.

The papers' schedules are kept, scaled to fewer steps: where a rate warms up and falls, it does so over the
row's whole budget, and hard negatives begin after :data:`HARD_SHARE` of it. Every training has its whole
budget: with patience a lucky value on val, while the rate was high, ended some after half of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from moviola.study.training.validation import OVER_TYPES

__all__ = [
    "PRESETS", "SETTINGS", "WHOLE", "WORLDS", "Budget", "Cut", "Job", "Preset", "jobs", "seed_mark",
    "strategy_job",
]  # fmt: skip

TOPS = (1, 20, 40)
"""N: moments a training query (TVR-Ranking, section 3.5)."""

HARD_SHARE = 0.5
"""Of a budget of steps, the share after which negatives are drawn from the hardest."""

EVALUATIONS = 24
"""Evaluations on val that a budget of steps has."""

SENTENCES, TRUTH = "minilm", "truth"
"""By which labels are chosen besides: a sentence encoder, as the papers choose theirs by SimCSE, and, as a
control, relevance itself."""


@dataclass(frozen=True)
class Cut:
    """The part of the data that is taken for a world.

    Attributes:
        similarity: by which labels are chosen, see :func:`moviola.study.datasets.gridhouse.build`.
        times: training queries, in those of the preset; where there are fewer, all.
        clip_seconds: seconds from one frame's features to the next. Proposals are those of the stage 1 that
            reads one frame a second.
        share: of the training films, the first ones, and of the training queries.
        one_pool: all films are those of each split, as in TVR-Ranking and SPR: queries of training, val and
            test are apart, and search the same films, from which positives are drawn, too. Else each split
            has films of its own, which no other one has seen.
        scrambled: features of texts are turned at random (:func:`comparison.streams.scramble_texts`), so that
            the encoder knows nothing of which words go with which pictures: a control for models that begin
            with what it knows.
    """

    similarity: str = "slots"
    times: int = 1
    clip_seconds: float = 1.0
    share: float = 1.0
    one_pool: bool = False
    scrambled: bool = False


WHOLE = Cut()
POOL, SCRAMBLED = "report-pool", "report-scrambled"

WORLDS = {
    "report": WHOLE,
    **{f"report-{by}": Cut(similarity=by) for by in (SENTENCES, TRUTH)},
    "report-queries": Cut(times=2),
    "report-1.5s": Cut(clip_seconds=1.5),
    "report-fifth": Cut(share=0.2),
    POOL: Cut(one_pool=True),
    SCRAMBLED: Cut(one_pool=True, scrambled=True),
}
"""All are of the same films; the queries of val and test are the same in all."""

ORDER = (
    "spr-stage1", "spr-relo", "xml", "reel", "reloclnet", "spr-clip", "prem", "conquer", "spr-relo-large",
)  # fmt: skip
"""In which recipes are trained: those that most is compared with first."""

LARGE = ("spr-stage1", "reel", "xml", "spr-relo", "spr-clip", "prem")
"""Recipes of the preset ``large``, in this order."""

IN_POOL = ("spr-stage1", "xml", "reloclnet", "spr-relo", "conquer", "prem", "spr-clip", "prem-given", "reel")
"""Recipes of the preset ``pool``, in this order."""

CONTROLS = ("spr-stage1", "spr-relo", "xml", "spr-clip")
"""Recipes of the presets of one pool that have rows with scrambled texts."""

ALIGNED = ("xml", "reloclnet", "prem", "spr-relo")
"""Recipes of the presets of one pool that learn a space from nothing, and have rows with an aligned start."""

CONQUERS = ("general", "disjoint", "exclusive")


@dataclass(frozen=True)
class Job:
    """One training, which takes minutes.

    Attributes:
        name: unique, and good for a file name.
        recipe: a name in :data:`moviola.study.training.recipes.RECIPES`.
        top: N, moments a training query.
        seed: of the training.
        overrides: settings, as on the command line.
        stage1: the job whose stage 1 gives proposals and video scores; None for stage 1 itself.
        group: the table that it belongs to.
        relevant: pairs of captions that resemble each other at least so much are handed to it as potentially
            relevant (theta); 0 for none.
        phi: which texts of a caption are compared for that, as for :func:`find_relevant_pairs`.
        world: where, one of :data:`WORLDS`.
        lines: subtitle lines a query that are candidates too (:mod:`comparison.lines`); 0 for none.
    """

    name: str
    recipe: str
    top: int
    seed: int = 0
    overrides: tuple[str, ...] = ()
    stage1: str | None = None
    group: str = "main"
    relevant: float = 0.0
    world: str = "report"
    lines: int = 0
    phi: str = "np-vp"


@dataclass(frozen=True)
class Budget:
    """How much one training may cost at most.

    Attributes:
        steps: of a phase by its name, "loop" for models with one phase.
        batch: examples of a step, by the same names.
    """

    steps: Mapping[str, int]
    batch: Mapping[str, int]

    def longer(self, times: int) -> Budget:
        """The same with a multiple of its steps."""
        return Budget({phase: times * steps for phase, steps in self.steps.items()}, self.batch)


@dataclass(frozen=True)
class Preset:
    """An effort.

    Attributes:
        videos: films, of which 60 % are for training, 10 % for val, 30 % for test.
        queries: training queries.
        films: their seed.
        tops: N, of which ``top`` is that of all studies but Table 5's, which has the largest.
        seeds: of the main rows, and of the studies that have several.
        segments: k, segments retrieved a query.
        budgets: by recipe.
        sizes: further overrides by recipe.
        studies: with ablations.
        lines: subtitle lines a query that are candidates too, in rows of :data:`WITH_LINES`; 0 leaves these
            rows out.
        slow_clips: with SPR_ReLo-S on clips of 1.5 s, as the paper's are.
        own_stage1: with Reel's own stage 1, and Reel on its proposals.
        recipes: of the main rows, in the order in which they are trained.
        fifth: recipes whose main rows are trained on a fifth of the films and queries too.
        longer: main rows that are trained with a longer budget too: multiple of the steps by row.
        fifth_longer: the same, of the recipes that are trained on a fifth.
        encoder: revision of the demo's encoder that films are encoded with; "" for today's.
        world: of the main rows and of studies, one of :data:`WORLDS`.
        other_seeds: of the main rows with another N than ``top``; None for ``seeds``.
        conquers: similarities of CONQUER that have main rows.
        unseen: recipes whose main rows are trained with films that are apart, too.
        readings: with SPR's strong and weak positives in both readings of its section 4.7.
        regularised: main rows that are trained by each of :data:`REGULARISED` too.
        regularised_unseen: the same, in films that are apart.
        controls: recipes whose main rows are trained on features of scrambled texts, too.
        aligned: main rows that are trained from an aligned start, too: the other half of that control.
        related: with potentially relevant pairs on XML, as the study of that name, and :data:`THETAS`.
        narrator: films have one, so that there are subtitles; else all features and queries are of pictures,
            and ``queries`` is the number of all that the films have.
    """

    videos: int
    queries: int
    films: int
    tops: tuple[int, ...]
    top: int
    seeds: tuple[int, ...]
    segments: int
    budgets: Mapping[str, Budget]
    sizes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    studies: bool = True
    lines: int = 0
    slow_clips: bool = False
    own_stage1: bool = False
    recipes: tuple[str, ...] = ORDER
    fifth: tuple[str, ...] = ()
    longer: Mapping[str, int] = field(default_factory=dict)
    fifth_longer: Mapping[str, int] = field(default_factory=dict)
    encoder: str = ""
    world: str = "report"
    other_seeds: tuple[int, ...] | None = None
    conquers: tuple[str, ...] = CONQUERS
    unseen: tuple[str, ...] = ()
    readings: bool = False
    regularised: tuple[str, ...] = ()
    regularised_unseen: tuple[str, ...] = ()
    controls: tuple[str, ...] = ()
    aligned: tuple[str, ...] = ()
    related: bool = False
    narrator: bool = True


# ---- settings --------------------------------------------------------------------------------------------

QUICK = ("loop.optimizer.warmup=0.05", "loop.select=nDCG@20,IoU>=0.5")
WINDOWS = ("sampling.held_by_window=true", *QUICK)
BY_TYPES = f"select={OVER_TYPES}"
WEIGHED = ("model.stream_weights=query", "sampling.even_types=true", f"loop.{BY_TYPES}")
APART = ("model.stream_weights=type",)
FIRST_EDITION = ("loop.average=0",)
"""Of Reel: its rows were trained before a running mean of weights was found to help
(``docs/benchmark/reel-ideas.md``).
"""

SECOND_EDITION = ("loop.average=0.99",)
"""Of Reel: the recipe's default, said since the rows' sizes name the first edition."""

SIZES: dict[str, tuple[str, ...]] = {
    "spr-stage1": ("model.layers=2", "model.identity_start=true", "model.logit_scale=4.0"),
    "spr-clip": ("model.layers=2", "model.identity_start=true", *WINDOWS, f"loop.{BY_TYPES}"),
    "spr-relo": ("model.hidden_size=64", "model.heads=4", *WINDOWS, f"loop.{BY_TYPES}"),
    "spr-relo-large": ("model.hidden_size=128", "model.heads=4", *WINDOWS, f"loop.{BY_TYPES}"),
    "reel-stage1": ("model.hidden_size=128",),
    "reel": ("model.hidden_size=128", "model.longest_span=16", f"loop.{BY_TYPES}", *FIRST_EDITION),
    "xml": ("model.hidden_size=64", *QUICK, *WEIGHED),
    "reloclnet": ("model.hidden_size=64", "model.heads=4", *QUICK, *WEIGHED),
    "conquer": (
        "model.hidden_size=64",
        "model.heads=4",
        "model.feed_forward_size=128",
        "model.clusters=8",
        "model.candidates=10",
        "model.top_videos=10",
        f"loop.{BY_TYPES}",
    ),
    "prem": ("model.hidden_size=64", "model.feed_forward_size=128", f"localizer.{BY_TYPES}"),
}
"""Sizes for features of 128 numbers and a machine of two cores; the papers' sizes are the recipes' own.
Weights of a training are chosen by the mean over types of queries; XML and ReLoCLNet weigh streams."""
SIZES["prem-apart"] = SIZES["prem"]
SIZES["prem-given"] = ("model.hidden_size=64", "model.feed_forward_size=128", f"loop.{BY_TYPES}")


SETTINGS: dict[str, tuple[str, ...]] = {
    "spr-stage1": ("loop.optimizer.lr=5e-4",),
    **dict.fromkeys(
        ("spr-clip", "spr-relo", "spr-relo-large"), ("loop.optimizer.lr=1e-3", "sampling.strategy=standard")
    ),
    **dict.fromkeys(("reel", "xml", "reloclnet"), ("loop.optimizer.lr=2e-3",)),
    "conquer": ("loop.optimizer.lr=1e-3",),
    **dict.fromkeys(
        ("prem", "prem-apart", "prem-given"), ("loop.optimizer.lr=1e-3", "model.temperature=0.05")
    ),
}
"""Of three settings of each recipe the best on val of 300 other films, :data:`CHOSEN_ON`
(``results/develop-*.json``). Reel's own stage 1 has its recipe's."""

CHOSEN_ON = 51
"""Seed of these films."""

HARD: dict[str, str] = {
    "xml": "sampling.hard_from",
    "reloclnet": "sampling.hard_from",
    "spr-clip": "sampling.hard_negatives_from_epoch",
    "spr-relo": "sampling.hard_negatives_from_epoch",
    "spr-relo-large": "sampling.hard_negatives_from_epoch",
}
"""The setting that says from which epoch negatives are drawn from the hardest."""


def _budgets(scale: float) -> dict[str, Budget]:
    """Steps in proportion; a training of XML has ``2400 * scale``."""

    def budget(steps: int, batch: int) -> Budget:
        return Budget({"loop": max(4, round(steps * scale))}, {"loop": batch})

    prem = {"retriever": max(4, round(2400 * scale)), "localizer": max(4, round(2400 * scale))}
    return {
        "spr-stage1": budget(600, 256),
        "spr-clip": budget(2400, 64),
        "spr-relo": budget(4800, 64),
        "spr-relo-large": budget(4800, 64),
        "reel-stage1": budget(600, 32),
        "reel": budget(1600, 32),
        "xml": budget(2400, 128),
        "reloclnet": budget(2400, 64),
        "conquer": budget(3200, 8),
        "prem-given": budget(2400, 8),
        **dict.fromkeys(("prem", "prem-apart"), Budget(prem, {"retriever": 64, "localizer": 8})),
    }


RISING = 0.02
"""Share by which val's best value rises in the last quarter of a training that would gain by a longer one."""

PRESETS: dict[str, Preset] = {
    "small": Preset(
        videos=40, queries=60, films=33, tops=(20,), top=20, seeds=(0,),
        segments=40, budgets=_budgets(0.0025), fifth=LARGE[:-1], longer={"prem": 2, "spr-relo-large": 2},
    ),
    "third": Preset(
        videos=300, queries=500, films=97, tops=TOPS, top=20, seeds=(0, 1, 2),
        segments=50, budgets=_budgets(1.0), lines=20, slow_clips=True,
        own_stage1=True, encoder="cf4f03a5c3dd7cc3",
        longer={"prem": 2, "spr-relo-large": 2, "conquer-exclusive": 2, "conquer-general": 2},
    ),
    "large": Preset(
        videos=1500, queries=3000, films=98, tops=(20,), top=20, seeds=(0,),
        segments=50, budgets=_budgets(1.0), studies=False,
        recipes=LARGE, fifth=LARGE, longer={"spr-relo": 2, "xml": 2, "prem": 2},
        fifth_longer={"xml": 2, "prem": 2}, encoder="d27f4c6120c3606e",
    ),
    "pool": Preset(
        videos=300, queries=500, films=99, tops=TOPS, top=20, seeds=(0, 1, 2), other_seeds=(0,),
        segments=50, budgets=_budgets(1.0), studies=False, recipes=IN_POOL,
        conquers=("general", "exclusive"), world=POOL, unseen=IN_POOL, readings=True, controls=CONTROLS,
        aligned=ALIGNED,
        regularised=("xml", "reloclnet", "conquer-exclusive", "prem"),
    ),
    "pool-small": Preset(
        videos=120, queries=377, films=881001, tops=TOPS, top=20, seeds=(0, 1, 2), other_seeds=(0,),
        segments=50, budgets=_budgets(1 / 3), studies=False, recipes=IN_POOL,
        conquers=("general", "exclusive"), world=POOL, unseen=IN_POOL, controls=CONTROLS, aligned=ALIGNED,
        related=True, readings=True, regularised_unseen=("xml", "reloclnet", "conquer-exclusive", "prem"),
        longer={"xml": 3, "reloclnet": 3, "prem": 3}, narrator=False, encoder="bb612cd684efdf7c",
    ),
}  # fmt: skip
"""``small`` shows that everything works, in minutes; a fifth of its films are too few for PREM. ``third`` and
``large`` are for reports: hours, on films that nothing was chosen on (``benchmarks/comparison/third.md``,
``large.md``). ``pool`` is the papers' task: films are common and queries apart; its rows ``-unseen`` are the
same on the same films, apart. ``pool-small`` is the same task in an hour or two: fewer films, pictures alone,
a third of the steps."""


# ---- jobs ------------------------------------------------------------------------------------------------

OWN_STAGE1 = "reel-stage1"
"""Recipe, and group, of the stage 1 that is Reel's own."""

MODELS = ("spr-clip", "spr-relo", "spr-relo-large", "reel", "xml", "reloclnet", "conquer", "prem")


def jobs(preset: Preset) -> list[Job]:
    """All trainings of a preset, in the order in which they are best done."""
    return list({job.name: job for job in _Planner(preset).all()}.values())


def seed_mark(seed: int) -> str:
    """The end of the name of a job with a seed; the first has none."""
    return f"-seed{seed}" if seed else ""


def seed_setting(seed: int) -> tuple[str, ...]:
    """What a job with a seed sets; nothing for the first, the recipes' own."""
    return (f"loop.seed={seed}",) if seed else ()


def strategy_job(recipe: str, name: str, preset: Preset) -> str:
    """The job that trains a recipe by one of :data:`STRATEGIES`, a row of Table 5.

    Where the settings of the recipe say the same, it is the main row with the most moments, which is not
    trained a second time.
    """
    same = set(STRATEGIES[name]) <= set(SETTINGS[recipe])
    return f"{recipe}-n{max(preset.tops)}" if same else f"{recipe}-{name}"


@dataclass(frozen=True)
class _Planner:
    preset: Preset

    def all(self) -> Iterator[Job]:
        """Everything: one seed of the main rows as their settings are chosen, then the rest."""
        preset = self.preset
        yield from self.main()
        yield from self.elsewhere("report-fifth", preset.fifth, "fifth")
        for row, times in preset.longer.items():
            recipe, *kind = MAIN_ROWS[row]
            yield self.study(f"{row}-longer", recipe, "longer", *kind, times=times)
        yield from self.elsewhere("report", preset.unseen, "unseen")
        yield from self.in_pool()
        for recipe, times in preset.fifth_longer.items():
            yield from self.elsewhere("report-fifth", [recipe], "longer", times=times)
        if preset.studies:
            yield from self.studies()
        if preset.own_stage1:
            for seed in preset.seeds:
                yield from self.own_stage1(seed)
        if preset.slow_clips:
            yield self.study("spr-relo-1.5s", "spr-relo", "clips", world="report-1.5s")
        if preset.lines:
            for row in WITH_LINES:
                recipe, *kind = MAIN_ROWS[row]
                yield replace(self.study(f"{row}-lines", recipe, "lines", *kind), lines=preset.lines)
            for row in LINES_APART:
                yield replace(self.study(f"{row}-lines-apart", row, "lines", *APART), lines=preset.lines)

    def in_pool(self) -> Iterator[Job]:
        """What presets of one pool have besides."""
        preset = self.preset
        yield from self.elsewhere(SCRAMBLED, preset.controls, "controls")
        for row in preset.aligned:
            yield self.study(f"{row}-aligned", row, "controls", "model.aligned_start=true")
        if preset.related:
            yield from self.related()
        if preset.readings:
            yield from self.readings()
        for row in preset.regularised:
            yield from self.regularised(row)
        for row in preset.regularised_unseen:
            for job in self.regularised(row, unseen=True):
                yield replace(job, stage1="spr-stage1-unseen")

    def main(self) -> Iterator[Job]:
        """The main rows with every N and every seed."""
        preset, top = self.preset, self.preset.top
        for recipe in preset.recipes:
            yield from self.rows(recipe, top, 0)
        for seed in filter(None, preset.seeds):
            for recipe in preset.recipes:
                yield from self.rows(recipe, top, seed)
        for seed in preset.seeds:
            if preset.other_seeds is not None and seed not in preset.other_seeds:
                continue
            for other in (n for n in reversed(preset.tops) if n != top):
                for recipe in preset.recipes:
                    yield from self.rows(recipe, other, seed)

    def overrides(
        self, recipe: str, top: int, *more: str, times: int = 1, world: str = "report"
    ) -> tuple[str, ...]:
        """The schedule, the sizes, what was chosen, and what a row has besides."""
        given = (*SIZES[recipe], *self.preset.sizes.get(recipe, ()), *SETTINGS.get(recipe, ()), *more)
        pairs = round(WORLDS[world].times * WORLDS[world].share * self.preset.queries), top
        return (*self.schedule(self.preset.budgets[recipe].longer(times), recipe, pairs, given), *given)

    def schedule(
        self, budget: Budget, recipe: str, pairs: tuple[int, int], given: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Limits in steps, and the epoch in which hard negatives begin.

        ``pairs`` is the number of training queries, and of moments of each.
        """
        made = ["loop.epochs=1000000", "loop.patience=0"]
        for phase, steps in budget.steps.items():
            made += [f"{phase}.steps={steps}", f"{phase}.batch_size={budget.batch[phase]}"]
            made.append(f"{phase}.evaluate_every={-(-steps // EVALUATIONS)}")
        if recipe in HARD:
            strategy = [value for value in given if value.startswith("sampling.strategy=")][-1:]
            by_query = strategy == ["sampling.strategy=strong-weak"]  # an epoch has every query once
            queries, top = pairs
            examples = queries * (1 if by_query else top)
            per_epoch = -(-examples // budget.batch["loop"])
            first = max(1, round(HARD_SHARE * budget.steps["loop"] / per_epoch))
            made.append(f"{HARD[recipe]}={first}")
        return tuple(made)

    def rows(self, recipe: str, top: int, seed: int) -> Iterator[Job]:
        """The main rows of a recipe."""
        mark, seeded = seed_mark(seed), seed_setting(seed)
        group = "seeds" if seed else "main"
        if recipe == "spr-stage1":
            own = self.overrides(recipe, top, *seeded)
            yield Job(
                f"{recipe}-n{top}{mark}", recipe, top, seed, own, group="stage1", world=self.preset.world
            )
            return
        kinds = self.preset.conquers if recipe == "conquer" else ("",)
        for kind in kinds:
            name = f"{recipe}-{kind}" if kind else recipe
            more = (f"model.similarity={kind}",) if kind else ()
            own = self.overrides(recipe, top, *more, *seeded)
            first = f"spr-stage1-n{top}{mark}"
            yield Job(f"{name}-n{top}{mark}", recipe, top, seed, own, first, group, world=self.preset.world)

    def own_stage1(self, seed: int) -> Iterator[Job]:
        """Reel's own stage 1, and Reel on its proposals."""
        top, mark, seeded = self.preset.top, seed_mark(seed), seed_setting(seed)
        first = f"{OWN_STAGE1}-n{top}{mark}"
        for name, recipe, stage1 in ((first, OWN_STAGE1, None), (f"reel-own{mark}", "reel", first)):
            own = self.overrides(recipe, top, *seeded)
            yield Job(name, recipe, top, seed, own, stage1, OWN_STAGE1)

    def second_edition(self) -> Iterator[Job]:
        """Reel with a running mean of weights, and with subtitle lines as candidates too."""
        for seed in self.preset.seeds:
            yield self.study("reel-second", "reel", "second-edition", *SECOND_EDITION, seed=seed)
        if self.preset.lines:
            heard = self.study("reel-second-lines", "reel", "second-edition", *SECOND_EDITION)
            yield replace(heard, lines=self.preset.lines)

    def study(
        self,
        name: str,
        recipe: str,
        group: str,
        *more: str,
        top: int | None = None,
        relevant: float = 0.0,
        times: int = 1,
        world: str | None = None,
        seed: int = 0,
    ) -> Job:
        """A row of a study."""
        world = world or self.preset.world
        n, mark = top or self.preset.top, seed_mark(seed)
        own = self.overrides(recipe, n, *more, *seed_setting(seed), times=times, world=world)
        return Job(f"{name}{mark}", recipe, n, seed, own, f"spr-stage1-n{n}{mark}", group, relevant, world)

    def studies(self) -> Iterator[Job]:
        """The rows of the ablations."""
        for recipe in ("xml", "reloclnet"):
            yield self.study(f"{recipe}-without-hard", recipe, "hard", f"{HARD[recipe]}=1000000")
        for name, more in PREMS.items():
            yield self.study(f"prem-{name}", "prem", "prem", more)
        yield from self.second_edition()
        for seed in self.preset.seeds:
            yield from self.streams(seed)
            yield from self.strategies(seed)
            yield from self.relevant_pairs(seed)
        for similarity in (SENTENCES, TRUTH):
            yield from self.elsewhere(f"report-{similarity}", OTHER_LABELS, "labels")
        yield from self.true_labels()
        for row, (recipe, strategy) in MORE_QUERIES.items():
            own, n = STRATEGIES.get(strategy, ()), max(self.preset.tops) if strategy else self.preset.top
            yield self.study(f"{row}-more-queries", recipe, "queries", *own, top=n, world="report-queries")
        for share in SHARES:
            own = self.overrides("spr-stage1", self.preset.top, f"sampling.least_share={share}")
            yield Job(f"spr-stage1-share{share}", "spr-stage1", self.preset.top, 0, own, group="share")

    def true_labels(self) -> Iterator[Job]:
        """PREM's loss beside whole videos as positives, where no label is wrong."""
        yield from self.elsewhere(f"report-{TRUTH}", ("prem",), "labels")
        job = self.study(f"prem-video-only-{TRUTH}", "prem", "labels", PREMS["video-only"])
        yield replace(job, stage1=f"spr-stage1-{TRUTH}", world=f"report-{TRUTH}")

    def streams(self, seed: int) -> Iterator[Job]:
        """Streams that are apart, and pictures alone."""
        for recipe in ("xml", "reloclnet"):
            yield self.study(f"{recipe}-apart", recipe, "streams", *APART, seed=seed)
            yield self.study(f"{recipe}-pictures", recipe, "streams", "model.subtitle_size=0", seed=seed)
        yield self.study("prem-apart", "prem-apart", "streams", seed=seed)
        if seed:  # the first is among PREM's parts
            yield self.study("prem-image", "prem", "streams", PREMS["image"], seed=seed)

    def strategies(self, seed: int) -> Iterator[Job]:
        """Table 5."""
        most = max(self.preset.tops)
        for recipe in ("spr-relo", "spr-clip", "spr-relo-large"):
            for name, settings in STRATEGIES.items():
                job = f"{recipe}-{name}"
                if job == strategy_job(recipe, name, self.preset):
                    yield self.study(job, recipe, "strategy", *settings, top=most, seed=seed)

    def relevant_pairs(self, seed: int) -> Iterator[Job]:
        """XML with the terms of potentially relevant pairs."""
        least = min(self.preset.tops)
        for name, (theta, terms) in RELEVANT.items():
            settings = tuple(f"model.relevant_pairs.{term}" for term in terms.split())
            yield self.study(name, "xml", "relevant", *settings, top=least, relevant=theta, seed=seed)

    def related(self) -> Iterator[Job]:
        """XML with and without potentially relevant pairs, each seed, and further thresholds once."""
        least = min(self.preset.tops)
        for seed in self.preset.seeds:
            for recipe in ("spr-stage1", "xml"):
                yield from self.rows(recipe, least, seed)
            yield from self.relevant_pairs(seed)
            for phi in PHIS:
                row = self.study(
                    f"xml-pr-{phi}", "xml", "relevant", PAIRS, top=least, relevant=0.9, seed=seed
                )
                yield replace(row, phi=phi)
        for theta in THETAS:
            yield self.study(f"xml-pr-{theta}", "xml", "relevant", PAIRS, top=least, relevant=theta)

    def elsewhere(self, world: str, recipes: Sequence[str], group: str, *, times: int = 1) -> Iterator[Job]:
        """Main rows in another of :data:`WORLDS`, with its own stage 1, which comes first."""
        top, kind = self.preset.top, "unseen" if world == "report" else world.removeprefix("report-")
        longer = "-longer" if times > 1 else ""
        for recipe in recipes:
            first = None if recipe == "spr-stage1" else f"spr-stage1-{kind}"
            for similarity in self.preset.conquers if recipe == "conquer" else ("",):
                name = f"{recipe}-{similarity}" if similarity else recipe
                more = (f"model.similarity={similarity}",) if similarity else ()
                own = self.overrides(recipe, top, *more, world=world, times=times)
                yield Job(f"{name}-{kind}{longer}", recipe, top, 0, own, first, group, world=world)

    def regularised(self, row: str, *, unseen: bool = False) -> Iterator[Job]:
        """A baseline with each kind of regularisation, and with rates above those that were tried."""
        recipe, *kind = MAIN_ROWS[row]
        for name, settings in REGULARISED.items():
            own = [
                setting.format(phase=phase)
                for setting in settings
                for phase in (self.preset.budgets[recipe].steps if "{phase}" in setting else ("",))
            ]
            where, world = ("-unseen", "report") if unseen else ("", self.preset.world)
            yield self.study(f"{row}{where}-{name}", recipe, "regularised", *kind, *own, world=world)

    def readings(self) -> Iterator[Job]:
        """SPR's strong and weak positives, weak ones below strong ones alone, and trained as answers."""
        most = max(self.preset.tops)
        for name, more in (("5-20", ()), ("5-20-trained", ("sampling.train_weak=true",))):
            settings = (*STRATEGIES["5-20"], *more)
            yield self.study(f"spr-relo-{name}", "spr-relo", "readings", *settings, top=most)


MAIN_ROWS: dict[str, tuple[str, ...]] = {
    **{recipe: (recipe,) for recipe in MODELS if recipe != "conquer"},
    **{f"conquer-{kind}": ("conquer", f"model.similarity={kind}") for kind in CONQUERS},
}
"""The main rows but stage 1's: recipe, and what the row sets besides."""

REGULARISED: dict[str, tuple[str, ...]] = {
    "dropout": ("model.dropout=0.3",),
    "decay": ("{phase}.optimizer.weight_decay=0.1",),
    "mean": ("{phase}.average=0.99",),
    "rate": ("{phase}.optimizer.lr=4e-3",),
}
"""What may keep a baseline from learning 500 queries by heart, each alone: dropout (.1 else), decay of
weights (.01 else), a running mean of them, and a rate above the largest that was tried. Val chooses."""

WITH_LINES = ("spr-relo", "reel", "conquer-disjoint")
"""Main rows that are trained with subtitle lines as candidates too."""

LINES_APART = ("spr-relo",)
"""Of these, the rows that are trained with streams apart as well."""

OTHER_LABELS = ("spr-stage1", "spr-relo", "reel", "xml")
"""Trained on labels by :data:`SENTENCES` and :data:`TRUTH` too."""

MORE_QUERIES = {
    "spr-relo-standard": ("spr-relo", "standard"),
    "spr-relo-5-20": ("spr-relo", "5-20"),
    "reel": ("reel", ""),
    "xml": ("xml", ""),
}
"""Rows that are trained with more queries too, for as many steps: recipe, and the strategy of Table 5's."""

SHARES = (0.1, 0.5, 0.7)
"""Shares of a segment that must lie in an answer, besides .3 (SPR, Table 7)."""

STRATEGIES: dict[str, tuple[str, ...]] = {
    "standard": ("sampling.strategy=standard",),
    "hard-negative": ("sampling.strategy=hard-negative",),
    "5-20": ("sampling.strategy=strong-weak", "sampling.strong=5", "sampling.weak=20"),
    "5-30": ("sampling.strategy=strong-weak", "sampling.strong=5", "sampling.weak=30"),
    "10-20": ("sampling.strategy=strong-weak", "sampling.strong=10", "sampling.weak=20"),
}
"""The rows of SPR's Table 5: standard, HN, and HN with strong (++) and weak (+) positives."""

RELEVANT: dict[str, tuple[float, str]] = {
    "xml-sl": (0.7, "pairs=false segments=true"),
    "xml-pr": (0.7, "pairs=true"),
    "xml-sl-pr": (0.7, "segments=true"),
    "xml-pr-c1": (0.7, "confidence=false"),
    "xml-pr-related": (0.9, "pairs=true"),
    "xml-sl-pr-related": (0.9, "segments=true"),
    "xml-pr-c1-related": (0.9, "confidence=false"),
}
"""Theta and the settings of :class:`moviola.study.models.relevant_pairs.RelevantPairsConfig`.

By phrases, each of gridhouse's captions, which are all alike, is related to 38 % of the others at the paper's
0.7; at 0.9 to 1.9 %. In Charades-STA, for which the paper chose 0.7, it is 2.6 %.
"""

PAIRS = "model.relevant_pairs.pairs=true"
PHIS = ("sent", "vp")
"""Texts by which pairs are found at 0.9 besides noun and verb phrases (paper 003, tables 1 to 4)."""

THETAS = (0.6, 0.8)
"""Thresholds of potentially relevant pairs besides those of :data:`RELEVANT` (paper 003, tables 1 to 4)."""

PREMS: dict[str, str] = {
    "no-weak": "model.positives=strong",
    "video-only": "model.positives=video",
    "no-query-term": "model.video_to_query=false",
    "text": "model.visual_size=0",
    "image": "model.subtitle_size=0",
    "mean-pooling": "model.pooling=mean",
    "max-pooling": "model.pooling=max",
    "no-gate": "model.gate=none",
    "no-shared-norm": "model.shared_norm=false",
    "no-adversarial": "model.adversarial_weight=0",
}
"""PREM's tables 2, 3 and 6."""
