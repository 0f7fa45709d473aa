"""``moviola doctor``: how this machine and the library stand."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from moviola.cli.app import JsonOption, app, emit_json, leave_partial, show_table
from moviola.cli.library import DEFAULT_LIBRARY, LibraryOption


@app.command()
def doctor(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """What this machine has, what it lacks and what that means; and how the library stands.

    Example: `moviola doctor`

    From Python: `moviola.library.diagnosis.diagnose`.
    """
    from dataclasses import asdict

    from moviola.library.diagnosis import diagnose

    findings = diagnose(library)
    if json:
        emit_json([asdict(finding) for finding in findings])
    else:
        marks = {True: Text("ok", style="green"), False: Text("!!", style="red")}
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        show_table(table, ((marks[finding.ok], finding.what, finding.detail) for finding in findings))
    if not all(finding.ok for finding in findings):
        leave_partial()
