"""200 studies in which no prompt is better than another: at most 5 % claim a gain (slow)."""

import hashlib

import pytest
from fakes_of_tuning import Fake, labels

import kit

STUDIES, TRIALS = 200, 4


def chance(*parts):
    """A number in [0, 1) that depends on its parts only."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:12], 16) / 16**12


def maker(study):
    class Noisy(Fake):
        """Right three times in four, more often on easy prompts; half of it is what the baseline says."""

        def met(self, task, response, c):
            where = (study, task.id, response.id, c.id)
            who = self.prompt if chance("half", self.prompt, *where) < 0.5 else "baseline"
            easy = 0.4 * (chance("easy", study, task.id) - 0.5)
            right = chance(who, *where) < 0.75 + easy
            return right == ("good" in response.text)

    return Noisy


@pytest.mark.slow
def test_null_studies_claim_no_gain(tmp_path):
    labelled, claims = labels(80), 0
    for study in range(STUDIES):
        options = {"prompt": "baseline", "seals": tmp_path / str(study)}
        b = kit.workbench(labelled, judge=maker(study), **options)
        for k in range(TRIALS):
            b.try_(f"p{k}", f"prompt {k}")
        reading = b.test()
        claims += reading.sentence.startswith("A gain")
    print(f"{claims} of {STUDIES} null studies claim a gain")
    assert claims <= 0.05 * STUDIES
