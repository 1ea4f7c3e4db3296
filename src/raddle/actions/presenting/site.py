"""A presentation as a tree of pages that MkDocs makes a site of: a page for each phase, one for what they all decided,
one for what is open."""

from __future__ import annotations

from raddle.actions.presenting.document import Document, Part, file_name
from raddle.actions.presenting.marks import bullets, words
from raddle.actions.presenting.report import facts, overview, page, part_blocks, pictures_of
from raddle.model.memory.yaml_text import format_yaml

SITE = "site"
_DOCS = "docs"


def site_of(document: Document) -> dict[str, bytes]:
    """Path -> bytes, below the folder `site`: `mkdocs.yml`, and the pages and pictures in `docs`."""
    names = [f"{file_name(number, part.phase)}.md" for number, part in enumerate(document.parts, start=1)]
    pages = {
        "index.md": page([f"# {words(document.title)}", facts(document), overview(document, tuple(names))]),
        **{
            name: page([f"# {words(part.phase)}", *part_blocks(part, level=2)])
            for name, part in zip(names, document.parts, strict=True)
        },
    }
    nav: list[dict[str, str]] = [{"Overview": "index.md"}]
    nav += [{part.phase: name} for part, name in zip(document.parts, names, strict=True)]
    for title, name, said in (
        ("Decisions", "decisions.md", [(part, part.decisions) for part in document.parts]),
        ("Open questions", "open-questions.md", [(part, part.questions) for part in document.parts]),
    ):
        if any(texts for _, texts in said):
            pages[name] = page([f"# {title}", *_by_phase(said)])
            nav.append({title: name})
    settings = format_yaml({"site_name": document.title, "docs_dir": _DOCS, "nav": nav})
    inside = {**pages, **pictures_of(document)}
    return {
        f"{SITE}/mkdocs.yml": settings.encode(),
        **{f"{SITE}/{_DOCS}/{path}": data for path, data in inside.items()},
    }


def _by_phase(said: list[tuple[Part, tuple[str, ...]]]) -> list[str]:
    return [block for part, texts in said if texts for block in (f"## {words(part.phase)}", bullets(texts))]
