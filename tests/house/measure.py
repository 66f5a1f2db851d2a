"""Measures the size and shape of `kit` from its source. `python tests/house/measure.py` prints the figures.

Docstrings count nowhere. A node is a node of Python's syntax tree: joining lines does not change their number.
"""

from __future__ import annotations

import ast
import io
import json
import statistics
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KIT = ROOT / "kit"
LONG = 200  # characters of a string constant that is data rather than code
LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip
OWNERS = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Module:
    """One file of a package: its name, its tree without docstrings, and what it imports of the package."""

    def __init__(self, path: Path, root: Path):
        parts = path.relative_to(root.parent).with_suffix("").parts
        self.path, self.is_package = path, parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.room = parts[1] if self.name.count(".") else self.name
        self.text = path.read_text("utf-8")
        self.tree = ast.parse(self.text)
        docstrings = list(self._docstrings())
        inside = {id(n) for d in docstrings for n in ast.walk(d)}
        self.nodes = [n for n in ast.walk(self.tree) if id(n) not in inside]
        self.code_lines = self._code_lines(docstrings)

    def _docstrings(self) -> Iterator[ast.stmt]:
        for node in ast.walk(self.tree):
            first = node.body[0] if isinstance(node, OWNERS) and node.body else None
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield first

    def _code_lines(self, docstrings: list[ast.stmt]) -> int:
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in LAYOUT:
                lines.update(range(token.start[0], token.end[0] + 1))
        for d in docstrings:
            lines.difference_update(range(d.lineno, d.end_lineno + 1))
        return len(lines)

    def count(self, *kinds: type) -> int:
        """Nodes of these kinds."""
        return sum(isinstance(n, kinds) for n in self.nodes)

    @property
    def long_strings(self) -> int:
        """Characters in long string constants."""
        texts = [n.value for n in self.nodes if isinstance(n, ast.Constant)]
        return sum(len(t) for t in texts if isinstance(t, str) and len(t) > LONG)

    @property
    def top_level_names(self) -> set[str]:
        """What the module itself defines: functions, classes, variables; without leading underscores."""
        names = {n.name for n in self.tree.body if isinstance(n, (*FUNCTIONS, ast.ClassDef))}
        for n in self.tree.body:
            if isinstance(n, ast.Assign):
                names |= {t.id for t in n.targets if isinstance(t, ast.Name)}
        return {name.strip("_") for name in names} - {""}

    @property
    def public_annotations(self) -> Iterator[ast.expr | None]:
        """The types of parameters and results of functions whose name has no leading underscore."""
        for n in self.nodes:
            if isinstance(n, FUNCTIONS) and not n.name.startswith("_"):
                every = [*n.args.posonlyargs, *n.args.args, *n.args.kwonlyargs]
                yield from (a.annotation for a in every if a.arg not in ("self", "cls"))
                yield n.returns

    @property
    def comments(self) -> int:
        """Lines that are a comment."""
        return sum(line.strip().startswith("#") for line in self.text.splitlines())

    def imports(self, names: set[str]) -> dict[str, int]:
        """The modules of the package that this one imports, also in functions, with the line; not for typing only."""
        typing_only = {
            id(inner)
            for n in self.nodes
            if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)
            for inner in ast.walk(n)
        }
        package = self.name.split(".") if self.is_package else self.name.split(".")[:-1]
        out: dict[str, int] = {}
        for n in self.nodes:
            if id(n) in typing_only:
                continue
            if isinstance(n, ast.Import):
                targets = [alias.name for alias in n.names]
            elif isinstance(n, ast.ImportFrom):
                above = package[: len(package) - n.level + 1] if n.level else []
                base = ".".join([*above, *([n.module] if n.module else [])])
                full = [f"{base}.{alias.name}" for alias in n.names]
                targets = [f if f in names else base for f in full]
            else:
                continue
            out |= {t: n.lineno for t in targets if t in names and t != self.name}
        return out


def modules(root: Path = KIT) -> dict[str, Module]:
    """All modules of a package, by name."""
    found = [Module(path, root) for path in sorted(root.rglob("*.py"))]
    return {m.name: m for m in found}


def circles(every: dict[str, Module]) -> list[str]:
    """The modules that lie on circles of imports, or between two of them."""
    edges = {name: set(m.imports(set(every))) for name, m in every.items()}
    while True:
        targets = {t for ts in edges.values() for t in ts}
        ends = [n for n, ts in edges.items() if not ts & edges.keys() or n not in targets]
        if not ends:
            return sorted(edges)
        for name in ends:
            del edges[name]


def measure(every: dict[str, Module]) -> dict[str, float]:
    """The figures that have a cap."""
    m = list(every.values())
    nodes, statements = sum(len(x.nodes) for x in m), sum(x.count(ast.stmt) for x in m)
    lines = sum(len(x.text.splitlines()) for x in m)
    return {
        "nodes": nodes,
        "statements": statements,
        "nodes per statement": round(nodes / statements, 2),
        "nodes per code line": round(nodes / sum(x.code_lines for x in m), 2),
        "functions": sum(x.count(*FUNCTIONS) for x in m),
        "modules": len(m),
        "rooms": len({x.room for x in m}),
        "characters in long strings": sum(x.long_strings for x in m),
        "share of comment lines": round(sum(x.comments for x in m) / lines, 4),
        "lines of tests": sum(
            len(p.read_text("utf-8").splitlines()) for p in (ROOT / "tests").rglob("*.py")
        ),
    }


def is_one_word(name: str) -> bool:
    """No underscore, and no capital inside: `mean`, `PRICES` and `Task`, but not `RunFolder` or `read_rows`."""
    if "_" in name:
        return False
    return name.isupper() or not any(letter.isupper() for letter in name[1:])


def measure_words(every: dict[str, Module]) -> dict[str, float]:
    """How far a reader must guess: names, dense expressions, types that say nothing."""
    m = list(every.values())
    # Docstrings count here, so that other packages can be measured in the same way.
    statements = sum(isinstance(n, ast.stmt) for x in m for n in ast.walk(x.tree))
    per_thousand = 1000 / statements
    definitions = Counter(name for x in m for name in x.top_level_names)
    functions = [n.name.strip("_") for x in m for n in x.nodes if isinstance(n, FUNCTIONS)]
    types = [annotation for x in m for annotation in x.public_annotations]
    bare = sum(isinstance(t, ast.Name) and t.id == "Any" for t in types)
    shared = sum(count > 1 for count in definitions.values())
    return {
        "share of one-word names": sum(map(is_one_word, definitions)) / len(definitions),
        "letters of a function's name": statistics.median(map(len, functions)),
        "share of names in several modules": shared / len(definitions),
        "comprehensions per 1,000 statements": per_thousand
        * sum(x.count(*COMPREHENSIONS) for x in m),
        "ternaries per 1,000 statements": per_thousand * sum(x.count(ast.IfExp) for x in m),
        "share of types that are a bare Any": bare / len(types),
    }


def by_room(every: dict[str, Module]) -> dict[str, dict[str, int]]:
    """Statements, nodes and modules of each room, the largest first."""
    out: dict[str, dict[str, int]] = {}
    for m in every.values():
        row = out.setdefault(m.room, {"statements": 0, "nodes": 0, "modules": 0})
        row["statements"] += m.count(ast.stmt)
        row["nodes"] += len(m.nodes)
        row["modules"] += 1
    return dict(sorted(out.items(), key=lambda item: -item[1]["statements"]))


if __name__ == "__main__":
    every = modules()
    print(
        json.dumps({**measure(every), **measure_words(every), "circles": circles(every)}, indent=1)
    )
    for room, row in by_room(every).items():
        print(f"{room:12} {row}")
