"""`python -m raddle.examples.app_build`: a small program is compiled and packed, as the phase `build` of a run.

The memory needs the phases build and test: `raddle store init NAME --phases build,test,present`.
"""

from __future__ import annotations

import io
import warnings
import zipfile

import raddle
from raddle.examples.as_program import run

SOURCES = {
    "words.py": '''"""Counts words."""


def count(text):
    """How often each word occurs."""
    found = {}
    for word in text.lower().split():
        found[word] = found.get(word, 0) + 1
    return found
''',
    "report.py": '''"""Says what was counted."""

from words import count


def report(text):
    """A line for each word."""
    if not text:
        return "nothing"
    return "\\n".join(f"{word} {number}" for word, number in sorted(count(text).items()))
''',
}


def build(sources: dict[str, str] | None = None) -> str:
    """The id of the run. `sources`: others than SOURCES; one that does not compile fails the phase."""
    chosen = SOURCES if sources is None else sources
    with raddle.PhaseAdapter("build") as phase, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in chosen.items():
                compile(text, name, "exec")
                entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same sources are the same archive
                archive.writestr(entry, text)
                phase.metric(module=name, lines=text.count("\n"))
        package = phase.artifact(out.getvalue(), artifact_id="package", kind="archive")
        phase.milestone("packed")
        phase.summary(f"{len(chosen)} modules compiled, {len(warned)} warnings.")
        phase.publish_handoff(
            f"{len(chosen)} modules build with {len(warned)} warnings",
            results={
                "modules": len(chosen),
                "warnings": len(warned),
                "bytes": len(out.getvalue()),
                "lines": {name: text.count("\n") for name, text in chosen.items()},
            },
            best_artifacts=[package],
            decisions=["Ship sources: they compile in no time"],
        )
        return phase.run_id


if __name__ == "__main__":
    run(build)
