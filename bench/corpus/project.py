"""The imaginary projects a corpus is about: their names, words and files, which edits change as time goes by.

Owns the content of the files, so that one file read, searched and edited in several sessions is the same
file each time; texts that repeat each other are what makes a corpus compress as real ones do.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import islice

from bench.corpus.words import ANIMALS, COMMON, ROOTS, Zipf, cjk_text, coined_words, identifier

Language = tuple[str, str, bool, Sequence[str]]
"""Suffix of a file, one step of indent, camelCase?, and the lines (`%s` is a name, `@` a comment's words)."""

_GO = (
    "func (s *%s) %s(ctx context.Context, %s string) (*%s, error) {",
    "if err := s.%s.%s(ctx, %s); err != nil {",
    'return nil, fmt.Errorf("failed to %s %s: %%w", err)',
    "%s, err := %s.%s(ctx, %s)",
    "if err != nil {",
    "return err",
    "}",
    "}",
    "}",
    "",
    "// @",
    "for _, %s := range %s.%s {",
    "%s := %s{%s: %s, %s: %s}",
    't.Errorf("%s = %%v, want %%v", %s, %s)',
    'if %s.%s == "" || len(%s) == 0 {',
    "case %s:",
    "%s.%s = append(%s.%s, %s)",
    "return %s, nil",
)
_PYTHON = (
    "def %s(%s: str, %s: int) -> %s:",
    "if %s is None or %s.%s:",
    "raise %s(f'%s {%s!r}')",
    "%s = %s.%s(%s, %s=%s)",
    "return %s",
    "",
    "",
    "# @",
    "for %s in %s.%s:",
    "with %s(%s) as %s:",
    "assert %s.%s == %s",
    "class %s(%s):",
    '"""@"""',
    "self.%s = %s",
    "try:",
    "except %s as error:",
    "%s[%s] = [%s for %s in %s if %s.%s]",
    "from %s.%s import %s",
)
_TYPESCRIPT = (
    "export async function %s(%s: %s): Promise<%s> {",
    "const %s = await %s.%s(%s);",
    "if (!%s || %s.%s === undefined) {",
    "throw new Error(`%s: ${%s}`);",
    "return { %s, %s: %s.%s };",
    "}",
    "});",
    "",
    "// @",
    "import { %s, %s } from '../%s/%s';",
    "expect(%s.%s).toEqual(%s);",
    "const [%s, set%s] = useState<%s>(%s);",
    '<%s className="%s-%s" on%s={%s} />',
    "interface %s extends %s {",
    "%s?: %s;",
    "%s.%s((%s) => %s.%s(%s));",
    "it('@', async () => {",
    "}",
)
_RUST = (
    "pub fn %s(&self, %s: &str) -> Result<%s, %s> {",
    "let %s = self.%s.%s(%s)?;",
    "match %s.%s(%s) {",
    "Some(%s) => %s::%s(%s),",
    "None => return Err(%s::%s),",
    "}",
    "}",
    "",
    "/// @",
    "impl %s for %s {",
    "use crate::%s::{%s, %s};",
    "assert_eq!(%s.%s, %s);",
    "#[derive(Debug, Clone, PartialEq)]",
    "pub %s: Option<%s>,",
    "for %s in %s.iter().filter(|%s| %s.%s()) {",
    "let mut %s = %s::new(%s);",
    'tracing::debug!(%s, %s, "%s");',
    "}",
)
_MARKDOWN = ("@", "@", "", "## @", "- @", "- `%s`: @", "| %s | %s | @ |", "    %s --%s %s", "")
_YAML = ("%s:", "- %s: %s", "%s: '%s'", "# @", "- uses: %s/%s", "run: %s %s --%s", "")
LANGUAGES: tuple[Language, ...] = (
    ("go", "\t", True, _GO),
    ("py", "    ", False, _PYTHON),
    ("ts", "  ", True, _TYPESCRIPT),
    ("rs", "    ", False, _RUST),
)
_SIDE_LANGUAGES: tuple[Language, ...] = (("md", "", False, _MARKDOWN), ("yaml", "  ", False, _YAML))
_USUAL = 0.72
_FOCUS = 0.85
_OPENERS = ("{", ":", "(")


class SourceFile:
    """One file of a project: its path from the root and what it says at present."""

    def __init__(self, path: str, language: Language, lines: list[str]) -> None:
        self.path = path
        self.language = language
        self.lines = lines
        self.version = 1

    def text(self) -> str:
        """The whole file."""
        return "\n".join(self.lines) + "\n"

    def numbered(self, start: int, stop: int) -> str:
        """The lines from `start` to `stop` as the Read tool shows them: a number, an arrow, the line."""
        return "\n".join([f"{at:6d}→{line}" for at, line in enumerate(self.lines[start:stop], start + 1)])


class Project:
    """A repository that does not exist: a root, words of its own, and files that are written when first read.

    `scale` stretches the sizes of its files.
    """

    def __init__(self, seed: str, number: int, *, scale: float, file_count: int = 110) -> None:
        rng = random.Random(f"{seed}/project/{number}")
        self.rng = rng
        self.language = LANGUAGES[number % len(LANGUAGES)]
        coined = rng.sample(coined_words(random.Random(f"{seed}/coined"), 7000), 1400)
        domain = rng.sample(sorted(set(ROOTS)), 150) + coined[:150]
        self.name = f"{rng.choice(ANIMALS)}-{domain[0]}"
        self.root = f"/home/dev/src/{self.name}"
        self.words = Zipf(COMMON + domain + coined[150:], exponent=1.08)
        self.phrases = Zipf(
            [" ".join(self.words.draw(rng, rng.randrange(1, 6))) for _ in range(6000)], exponent=0.75
        )
        self._parts = Zipf(domain, exponent=0.8)
        found = {identifier(rng, self._parts, camel=self.language[2]): None for _ in range(3200)}
        self.names = Zipf(list(found), exponent=1.05)
        self._idioms: dict[str, Zipf] = {}
        self.focus: list[str] = []
        self._scale = scale
        self._folders = [
            f"{rng.choice(('internal', 'src', 'cmd', 'lib', 'tests'))}/{word}" for word in domain[:14]
        ]
        self._paths = self._make_paths(rng, file_count)
        self._files: dict[str, SourceFile] = {}

    def _make_paths(self, rng: random.Random, count: int) -> Zipf:
        found: dict[str, None] = {}
        while len(found) < count:
            language = self.language if rng.random() < 0.85 else rng.choice(_SIDE_LANGUAGES)
            stem = "_".join(self._parts.draw(rng, rng.choice((1, 1, 2))))
            ending = f"_test.{language[0]}" if rng.random() < 0.25 else f".{language[0]}"
            found[f"{rng.choice(self._folders)}/{stem}{ending}"] = None
        return Zipf(list(found), exponent=0.6)

    def paths(self, rng: random.Random, count: int) -> list[str]:
        """`count` paths from the root, the busy ones more often."""
        return self._paths.draw(rng, count)

    def look_at(self, rng: random.Random) -> None:
        """Choose the handful of files that the next turns are mostly about."""
        self.focus = self._paths.draw(rng, rng.randrange(2, 6))

    def a_file(self, rng: random.Random) -> SourceFile:
        """One of its files: mostly one of those in focus, else the busy ones more often."""
        path = rng.choice(self.focus) if self.focus and rng.random() < _FOCUS else self._paths.one(rng)
        if path not in self._files:
            suffix = path.rsplit(".", 1)[1]
            language = next(one for one in (*LANGUAGES, *_SIDE_LANGUAGES) if one[0] == suffix)
            count = int(min(max(self.rng.lognormvariate(5.3, 0.85), 12), 1900) * self._scale) + 5
            self._files[path] = SourceFile(path, language, self.code(self.rng, language, count))
        return self._files[path]

    def _fresh_lines(self, rng: random.Random, language: Language, count: int) -> list[str]:
        chosen = rng.choices(language[3], k=count)
        names = iter(self.names.draw(rng, sum(line.count("%s") for line in chosen)))
        words = iter(self.words.draw(rng, 9 * sum(line.count("@") for line in chosen)))
        out = []
        for template in chosen:
            line = template % tuple(islice(names, template.count("%s"))) if "%" in template else template
            out.append(line.replace("@", " ".join(islice(words, 9)), 1) if "@" in line else line)
        return out

    def code(self, rng: random.Random, language: Language, count: int) -> list[str]:
        """`count` lines of something that looks like code, many of them the project's usual ones; indents
        follow what opens and closes.
        """
        suffix, step, _, _ = language
        if suffix not in self._idioms:
            self._idioms[suffix] = Zipf(self._fresh_lines(self.rng, language, 1500), exponent=0.7)
        usual = int(count * _USUAL)
        lines = self._idioms[suffix].draw(rng, usual) + self._fresh_lines(rng, language, count - usual)
        rng.shuffle(lines)
        out: list[str] = []
        depth = 0
        for line in lines:
            depth = max(depth - 1, 0) if line in ("}", "});", "") else depth
            out.append(step * depth + line if line else "")
            depth = min(depth + 1, 5) if line.endswith(_OPENERS) else depth
        if rng.random() < 0.004:
            out[-1] = f"// {cjk_text(rng, 24)}"
        return out


def edit(
    rng: random.Random, project: Project, file: SourceFile, scale: float
) -> tuple[int, list[str], list[str]]:
    """Change `file` in one place; gives the line where (from 0), the old lines and the new ones. `scale`
    stretches the change.
    """
    at = rng.randrange(max(len(file.lines) - 12, 1))
    size = int(min(rng.lognormvariate(1.5, 0.9), 60) * scale) + 1
    old = file.lines[at : at + size]
    fresh = project.code(rng, file.language, int(min(rng.lognormvariate(1.9, 0.9), 90) * scale) + 1)
    new = [old[0], *fresh, *old[len(old) // 2 + 1 :]] if old else fresh
    if len(file.lines) > 2600:
        new = fresh[:1]
    file.lines[at : at + size] = new
    file.version += 1
    return at, old, new
