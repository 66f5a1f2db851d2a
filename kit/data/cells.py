"""The records of a CSV file: a quote that is never closed costs its own line, not the rest."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence


class Lines:
    """Lines of which some are given again. number : of lines given; taken : those of a record."""

    def __init__(self, lines: Iterable[str]):
        self.lines, self.back, self.taken, self.number = iter(lines), [], [], 0

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> str:
        line = self.back.pop() if self.back else next(self.lines)
        self.number += 1
        self.taken.append(line)
        return line

    def again(self) -> None:
        """Give all but the first line of the record once more."""
        self.back += reversed(self.taken[1:])
        self.number -= len(self.taken) - 1


def records(file: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """(number of its first line, cells of a record or what is wrong with it). After a fault the
    lines that a stray quote took in are read as records of their own.

    >>> [cells for _, cells in records(['a,"b\\n', "c,d\\n"], ",")][1]
    ['c', 'd']
    """
    lines = Lines(file)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    while True:
        lines.taken.clear()
        start = lines.number + 1
        try:
            yield start, next(reader)
        except StopIteration:
            return
        except csv.Error as e:
            open_quote = "end of data" in str(e)
            lines.again()
            yield start, csv.Error("a quote is opened and never closed") if open_quote else e


def swallowed(cells: Sequence[str], delimiter: str) -> bool:
    """True where a quoted cell holds lines that look like rows of the table.

    >>> swallowed(["1", "x\\n2,y,z\\n3,y,z\\n4", "z"], ","), swallowed(["1", "a\\n\\nb", "z"], ",")
    (True, False)
    """
    width = len(cells)
    for inner in (c.split("\n")[1:-1] for c in cells if "\n" in c):
        alike = sum(line.count(delimiter) == width - 1 for line in inner)
        if width > 1 and alike >= (2 if width > 2 else 5) and alike >= 0.8 * len(inner):
            return True
    return False
