"""``moviola doctor``: a check of the machine, the configuration and the library."""

from __future__ import annotations

from moviola.cli.app import JsonOption, app, leave_partial, show_records
from moviola.cli.config import describe_config
from moviola.cli.options import DEFAULT_LIBRARY, LibraryOption


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
