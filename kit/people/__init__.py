"""A judge beside people: grades joined with labels, agreement, corrected rates, what to label next.

>>> from kit import people
>>> people.sign(0.5), people.sign(None)
(1, None)
"""

from .agreement import AgainstPeople, agreement
from .beside import Beside, beside, sign
from .labels import Labels, read_grades, read_labels
from .rate import Rated, against, rate

__all__ = [
    "AgainstPeople",
    "Beside",
    "Labels",
    "Rated",
    "against",
    "agreement",
    "beside",
    "rate",
    "read_grades",
    "read_labels",
    "sign",
]
