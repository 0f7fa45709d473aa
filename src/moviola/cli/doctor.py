"""``moviola doctor``: a check of the machine, the configuration and the library."""

from __future__ import annotations

from moviola.cli.app import JsonOption, app, leave_partial, show_records
from moviola.cli.config import describe_config
from moviola.cli.options import DEFAULT_LIBRARY, LibraryOption


@app.command()
def doctor(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """Check packages, encoder, device, config.toml and the library; exit code 3 if something needs a remedy.

    Example: `moviola doctor`

    From Python: `moviola.library.diagnosis.diagnose`.
    """
    from dataclasses import asdict

    from moviola.library.diagnosis import Finding, diagnose

    findings = [*diagnose(library), Finding("config", True, describe_config())]
    rows = (("ok" if finding.ok else "!!", finding.what, finding.detail) for finding in findings)
    show_records(json, [asdict(finding) for finding in findings], ("", "what", "result"), rows)
    if not all(finding.ok for finding in findings):
        leave_partial()
