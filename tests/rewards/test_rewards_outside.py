"""What an outsider saw in the rewards: each test tells one incident."""

import pytest

from kit.claims.direction import claims, settle


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("TSH: rises.", "up"),
        ("- TSH: decreases", "down"),
        ("- **TSH**: increased", "up"),
        ("- The TSH level: high", "up"),
        ("TSH ↑", "up"),
        ("TSH: ↓", "down"),
        ("The TSH is low.", "down"),
        ("The TSH is not high.", "not_up"),
        ("TSH: normal", "none"),
        ("A note on TSH and more: the price rises.", None),
        ("A high dose of TSH was given.", None),
    ],
)
def test_a_line_with_a_colon_states_its_direction(text, wanted):
    """ "TSH: rises." earned less than silence, on every direction task."""
    assert settle(claims(text, {"TSH": []})).get("TSH") == wanted
