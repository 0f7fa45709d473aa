"""Whether a library is sound, and what mends it: ``verify``, ``repair``, ``compact``, ``doctor``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from typer import Option

from moviola.cli.app import (
    JsonOption,
    YesOption,
    app,
    leave_partial,
    note,
    require_consent,
    show,
    show_records,
    some,
)
from moviola.cli.config import describe_config
from moviola.cli.options import DEFAULT_LIBRARY, LibraryOption, reading, writing
from moviola.errors import counted


@app.command()
def verify(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """Check every stored byte, the indexes and the source files; changes nothing. Code 3: damage was found.

    An index that is not up to date, as after an interrupted `moviola index`, is shown, and is no damage.

    Example: `moviola verify`

    From Python: `moviola.library.verify`.
    """
    from moviola import library as keeping

    with reading(library) as lib:
        problems = keeping.verify(lib.store)
    rows = ((p.video_id or str(library), p.message) for p in problems)
    show_records(json, problems, ("video", "problem"), rows)
    if any(problem.is_damage for problem in problems):
        leave_partial()
    note(f"{library}: sound")


@app.command()
def repair(
    dry_run: Annotated[bool, Option("--dry-run", help="Say what would be done, and change nothing.")] = False,
    for_good: Annotated[
        bool,
        Option(
            "--for-good",
            help="Also give up videos whose features are lost for ever, with a whole file or folder of "
            "them, and keep nothing of what is taken out. It cannot be undone.",
        ),
    ] = False,
    yes: YesOption = False,
    library: LibraryOption = DEFAULT_LIBRARY,
    json: JsonOption = False,
) -> None:
    """Repair a library: settings are put back, indexes and caches rebuilt, features of cues computed again.

    Videos with damaged features of pictures are taken out, to be indexed again; if more than one and more
    than a tenth are, it asks. `moviola library restore` brings back those whose features are whole again.
    Where a whole file or folder of features is missing, nothing is done.

    Example: `moviola repair --dry-run`

    From Python: `moviola.library.repair`, `moviola.library.mend_settings`.
    """
    from moviola import library as keeping

    def confirmed(videos: Sequence[str], total: int) -> bool:
        what = f"{library}: {len(videos)} of {counted(total, 'video')} would be taken out ({some(videos)})"
        require_consent(f"{what}; it cannot be undone" if for_good else what, yes)
        return True

    problems = keeping.mend_settings(library, dry_run=dry_run)
    if not (dry_run and problems):  # else it cannot be opened
        with (reading if dry_run else writing)(library) as lib:
            problems += keeping.repair(lib.store, confirm=confirmed, dry_run=dry_run, for_good=for_good)
    rows = ((p.video_id or str(library), p.message, p.repair) for p in problems)
    show_records(json, problems, ("video", "problem", "repair"), rows)
    what = "would be repaired" if dry_run else "repaired"
    note(f"{library}: {counted(len(problems), 'problem')} {what}")


@app.command()
def compact(
    yes: YesOption = False, library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False
) -> None:
    """Free the space of removed videos, which cannot be restored afterwards. It asks if there are any.

    Example: `moviola compact --yes`

    From Python: `moviola.library.compact`.
    """
    from moviola import library as keeping

    with writing(library) as lib:
        if ends := keeping.ends_with_compaction(lib.store):
            require_consent(f"{library}: {'; '.join(ends)}", yes)
        freed = keeping.compact(lib.store)
    show(json, {"freed_bytes": freed}, f"{library}: {freed / 2**20:.1f} MiB freed")


@app.command()
def doctor(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """Check packages, encoder, device, config.toml and every byte of the library; changes nothing.

    What needs a remedy is explained, with the command that mends it; exit code 3.

    Example: `moviola doctor`

    From Python: `moviola.library.diagnosis.diagnose`.
    """
    from moviola.library.diagnosis import Finding, diagnose

    findings = [*diagnose(library), Finding("config", True, describe_config())]
    rows = (
        (
            "ok" if finding.ok else "!!", finding.what,
            " · run: ".join(filter(None, (finding.detail, " && ".join(finding.commands)))),
        )
        for finding in findings
    )  # fmt: skip
    show_records(json, findings, ("", "what", "result"), rows)
    if not all(finding.ok for finding in findings):
        leave_partial()
