"""The records of a CSV file, up to a fault: a quote that is never closed takes in what follows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence


def records(file: Iterable[str], delimiter: str) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """(number of its first line, cells of a record); at a fault what is wrong, as the last one.

    >>> [cells for _, cells in records(["a,b\\n", 'c,"d\\n', "e,f\\n"], ",")][1]
    Error('a quote is opened and never closed; from this line on nothing was read')
    """
    reader = csv.reader(file, delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            yield start, next(reader)
        except StopIteration:
            return
        except csv.Error as e:
            said = "a quote is opened and never closed" if "end of data" in str(e) else e
            yield start, csv.Error(f"{said}; from this line on nothing was read")
            return


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
