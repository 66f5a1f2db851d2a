"""Numbers as answers write them: notation, sign, unit, and what they are a part of. Offline."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kit.checks import check
from kit.checks.quantities import agrees, quantities, readable
from kit.claims import verify
from kit.claims.factual import matched, score
from kit.claims.text import sentences
from kit.data.formats.biorlhf import truth_of
from kit.records import Criterion, Response, Task

CHARGE = {"text": "the charge", "number": 1.602e-19, "tolerance": 1e-21}


def fact(number, unit="", tolerance=0, **more):
    return {
        "text": f"{number} {unit}",
        "number": number,
        "unit": unit,
        "tolerance": tolerance,
        **more,
    }


def says(wanted, text):
    return matched(wanted, sentences(text))


def number(text, value, **args):
    c = Criterion(id="c", text="x", check={"name": "number", "value": value, **args})
    task = Task(id="t", prompt="p", criteria=(c,))
    return check(task, Response(task_id="t", id="r", text=text), c).status == "met"


@pytest.mark.parametrize(
    ("wanted", "wrong"),
    [
        (fact(1500, "mg"), ["1500 g", "1500 kg", "-1500 mg", "less than 1500 mg", "1500 m"]),
        (fact(384400, "km"), ["384,400 miles", "384,400 m"]),
        (fact(343, "m/s"), ["343 km/h", "343 m", "343 mph", "343 dollars", "343 m/s^2"]),
        (fact(37, "C"), ["37 F", "37 K"]),
        (fact(20, "ms"), ["20 s"]),
        (fact(50, "Gy"), ["50 mGy"]),
        (fact(3, "years"), ["3 months"]),
        (fact(5, "kcal"), ["5 cal", "5 kJ"]),
        (fact(12, "euros"), ["12 dollars", "$12"]),
        (fact(30, "ATP"), ["30 kg", "30%"]),
        ({"text": "71%", "number": 71}, ["71 km", "71"]),
    ],
)
def test_another_unit_is_wrong(wanted, wrong):
    """Only % was looked at: "1500 g" for 1500 mg and "343 km/h" for 343 m/s earned 1.0."""
    assert [t for t in wrong if says(wanted, t)] == []


@pytest.mark.parametrize(
    ("wanted", "right"),
    [
        (fact(1500, "mg"), ["1.5e3 mg", "1.5 × 10^3 mg", "1.5k mg", "1 500 mg", "1'500 mg"]),
        (fact(1500, "mg"), ["1\u202f500 mg", "1\u00a0500 mg", "1\u2009500 mg", "1.5 g", "1500"]),
        (fact(343, "m/s", 0.5), ["3.43e2 m/s", "0.343 km/s", "343 m s⁻¹", "1234.8 km/h"]),
        (fact(343, "m/s"), ["$343\\,\\mathrm{m/s}$", "343 metres per second"]),
        (fact(37, "C"), ["37 °C", "98.6 F", "310.15 K", "37 degrees"]),
        (fact(12, "euros"), ["€12", "12 EUR", "twelve euros"]),
        (fact(16569, "bp"), ["16 569 bp", "1.6569e4", "16.569k", "16.569 kb"]),
        (fact(3, "years"), ["three years", "36 months"]),
        ({"text": "71%", "number": 71}, ["71 percent", "71 pct", "seventy-one percent"]),
        ({"text": "a fourth", "number": 0.25}, ["1/4", "25%", ".25", "¼", "one quarter"]),
        (CHARGE, ["1.602e-19 C", "1.602 × 10^-19 C", "1.602×10⁻¹⁹ C"]),
        ({"text": "-5 percent", "number": -5}, ["-5%", "−5%", "a 5% decrease", "minus 5 percent"]),
    ],
)
def test_every_notation_of_the_right_number_counts(wanted, right):
    """ "1.5 g", "1 500 mg", "three years" and "1.602×10⁻¹⁹ C" earned nothing."""
    assert [t for t in right if not says(wanted, t)] == []


@pytest.mark.parametrize(
    ("wanted", "wrong"),
    [
        (CHARGE, ["0", "0 coulomb", "3e-12 C"]),
        ({"text": "-5 percent", "number": -5}, ["5 percent", "It rose by 5 percent."]),
        (fact(343, "m/s"), ["343 × 10^3 m/s", "343e3 m/s", "1/343 m/s", "twice 343 m/s"]),
        (fact(343, "m/s"), ["half of 343 m/s", "343 m/s plus 1000 m/s", "between 1 and 343 m/s"]),
        (fact(343, "m/s", 5), ["340 ± 300 m/s", "340 m/s or 400 m/s"]),
        (fact(31, "days"), ["31 days short of a year", "31 hours"]),
        (fact(1927), ["1926/1927", "before 1927"]),
        ({"text": "1927"}, ["1926/1927", "before 1927"]),
    ],
)
def test_a_part_of_something_else_is_not_the_number(wanted, wrong):
    """0 was within an absolute slack of every tiny number; ranges and products earned 1.0."""
    assert [t for t in wrong if says(wanted, t)] == []


@pytest.mark.parametrize(
    ("wanted", "right", "wrong"),
    [
        ({"text": "2-fold", "number": 2}, ["doubled", "rose twofold"], ["tripled", "halved"]),
        (fact(3, "times"), ["tripled", "rose threefold"], ["doubled", "quadrupled", "rose 2-fold"]),
        (fact(0.5, "times"), ["halved"], ["doubled", "did not halve"]),
        (
            {"text": "a 100% increase", "number": 100, "direction": "up"},
            ["doubled", "rose twofold"],
            ["tripled", "halved", "more than doubled", "fell twofold"],
        ),
        (fact(-50, "%"), ["halved"], ["doubled", "was not halved"]),
        ({"text": "2 copies", "number": 2}, ["2 copies were"], ["doubled"]),
    ],
)
def test_a_factor_said_in_a_word(wanted, right, wrong):
    """ "It doubled." was no number: for "2-fold" and "100%" it earned what a wrong one does."""
    assert [t for t in right if not says(wanted, f"It {t}.")] == []
    assert [t for t in wrong if says(wanted, f"It {t}.")] == []


@pytest.mark.parametrize(
    ("value", "unmet", "met"),
    [
        (5, ["minus 5", "negative 5", "- 5", "–5"], ["5", "a) 5", "x = 5"]),
        (-5, ["5"], ["minus 5", "−5", "x = -5"]),
        (1500, ["1500 million", "1500k", "1500/3", "1500^2"], ["1.5k", "1.5 thousand", "1 500"]),
        (1500, ["less than 1500", "between 1 and 1500", "1500 or 1600"], ["1,500", "$1500$"]),
        (7, ["7/2", "7:30", "7 million", "the 7th"], ["seven"]),
        (0.5, ["5"], ["1/2", "50%", "0,5", "5×10⁻¹"]),
        (12, ["12 or more", "- 12\n- 13"], ["12%", "- 12\n- as counted"]),
    ],
)
def test_the_number_check_reads_as_the_facts_do(value, unmet, met):
    """Both had a reader of their own: 5 was met by "minus 5", 7 by "7:30" and lost by "seven"."""
    assert [t for t in unmet if number(t, value)] == [t for t in met if not number(t, value)] == []


LISTINGS = (
    "3, 4, 5, 6|3,4,5|4 5|3; 4|3 and 4|3\n4\n5|[3, 4]|3 / 4 / 5|three, four|It is 3, 4, or 5."
    "|The answer is 3. The answer is 4.|Maybe 4, maybe 5.|4 (5)|Answer: 3, 4"
)
ONE = (
    "The answer is 4 (of the 9 mice).|9 - 5 = 4|9 minus 5 is 4.|4 (44%)|It is 4, not 5.|4 [1]"
    "|Of the 9 mice, 4 had tumours.|First 9 were bred. Then 5 stayed healthy. So 4 had tumours."
    "|All mice: 9\nHealthy: 5\nSick: 4|1. Count all: 9.\n2. Take away 5.\nAnswer: 4|4 (9 - 5)"
)


def test_a_listing_of_guesses_met_the_check_for_one_number():
    """ "3, 4, 5, 6" met it, as any row of fewer than six did: a policy listed what it could not
    tell."""
    assert [t for t in LISTINGS.split("|") if number(t, 4)] == []
    assert [t for t in ONE.split("|") if not number(t, 4)] == []


def test_numbers_that_are_called_equal_were_a_calculation_and_lines_a_ratio():
    """ "27=28" met the check for 27; "Healthy: 5\\nIll: 4" gave 5:4, with "Ill" as a unit."""
    false = "27=28", "28 = 27", "26=27=28", "27 == 28"
    assert [t for t in false if number(t, 27)] == []
    assert [paid("27", t) for t in false[:3]] == [0] * 3
    shown = "24 + 3 = 27", "27 = 24 + 3", "2 x 12 + 3 = 27", "n = 27", "27 = 27"
    assert [t for t in shown if not number(t, 27)] == []
    lines = "Healthy: 5\nIll: 4", "Ill: 4\nHealthy: 5", "Total: 9\nIn: 4", "Day: 3\nIll: 4 mice"
    assert [t for t in lines if not number(t, 4)] == []
    assert not number("5:4", 4) and not number("4 : 5", 4)


def test_two_numbers_that_two_checks_of_a_task_want_are_no_listing():
    both = [Criterion(id=f"{n}", text="x", check={"name": "number", "value": n}) for n in (3, 4)]
    task = Task(id="t", prompt="Which?", criteria=tuple(both))
    said = [Response(task_id="t", id=t, text=t) for t in ("3 and 4", "3, 4 and 5")]
    assert [[check(task, r, c).status for c in both] for r in said] == [["met"] * 2, ["unmet"] * 2]


def test_a_tiny_value_is_not_met_by_zero():
    assert not number("0", 1.6e-19, tolerance=1e-21) and not number("3e-12", 1.6e-19)
    assert number("1.6 x 10^-19", 1.6e-19)


def test_a_fact_of_biorlhf_keeps_its_sign():
    assert truth_of({"key_facts": ["log2FC of -2.1"]})["facts"][0]["number"] == -2.1


UNDER = (
    "below {}",
    "under {}",
    "less than {}",
    "< {}",
    "at most {}",
    "no more than {}",
    "{} or less",
)
OVER = ("above {}", "over {}", "more than {}", "> {}", "at least {}", "not below {}", "{} or more")


def paid(key_fact, said, asked="How much was it?"):
    truth = truth_of({"key_facts": [key_fact]})
    task = Task(id="t", prompt=asked, truth=truth)
    return score(task, Response(task_id="t", id="r", text=f"It was {said}.")).value


@pytest.mark.parametrize(
    ("key_fact", "number"),
    [
        ("<2-fold", "2-fold"),
        ("p < 0.05", "0.05"),
        ("FDR <5%", "5%"),
        ("≤1,000 genes", "1,000 genes"),
        ("less than 50 mg", "50 mg"),
        ("up to 40%", "40%"),
    ],
)
def test_the_opposite_of_a_limit_earned_the_maximum_and_its_other_wordings_nothing(
    key_fact, number
):
    right, wrong = ([w.format(number) for w in words] for words in (UNDER, OVER))
    assert [paid(key_fact, x) for x in right] == [1] * len(right)
    assert [paid(key_fact, x) for x in (*wrong, number)] == [0] * (len(wrong) + 1)
    turned = f"≥{number}"
    assert [paid(turned, x) for x in wrong] == [1] * len(wrong)
    assert [paid(turned, x) for x in (*right, number)] == [0] * (len(right) + 1)


def test_both_sides_of_a_limit_are_no_side():
    both = "over {0} and under {0}", "over {0} or under {0}", "under {0} and over {0}"
    for key_fact in ("<2-fold", ">2-fold", "≤2-fold", "≥2-fold"):
        assert {paid(key_fact, x.format("2-fold")) for x in both} == {0}
    assert paid("<LOD", "below the LOD") == paid("<LOD", "under the limit of detection") == 1
    assert paid("<LOD", "above the LOD") == paid("<LOD", "not below the LOD") == 0


def test_two_limits_in_one_fact_were_read_in_the_words_of_the_key_alone():
    """25 of 42 usual wordings earned nothing; all parts are wanted, each of its own thing."""
    key = "padj < 0.05 and |log2FC| > 1"
    right = (
        key,
        "|log2FC| > 1 and padj < 0.05",
        "an adjusted p below 0.05 and an absolute log2 fold change above 1",
        "padj less than 0.05 and |log2FC| greater than 1",
        "padj < .05, |log2FC| > 1",
    )
    wrong = (
        "padj < 0.05",
        "|log2FC| > 1",
        "padj > 0.05 and |log2FC| > 1",
        "padj < 0.05 and |log2FC| < 1",
        "padj < 0.05 or |log2FC| > 1",
        "padj < 0.05, |log2FC| > 1 or |log2FC| < 1",
        "padj < 1 and |log2FC| > 0.05",
        "|log2FC| < 0.05 and padj > 1",
        "not padj < 0.05 and |log2FC| > 1",
        "padj < 0.05 and |log2FC| > 2",
    )
    assert [paid(key, x) for x in right] == [1] * len(right)
    assert [paid(key, x) for x in wrong] == [0] * len(wrong)
    cells = ">200 genes, <5% mitochondrial reads"
    assert paid(cells, "less than 5% mitochondrial reads and more than 200 genes") == 1
    assert paid(cells, "more than 5% mitochondrial reads and less than 200 genes") == 0


def test_it_fell_by_12_percent_earned_the_maximum_where_it_rose():
    up, down = ("+12%", "up by 12%", "higher by 12%"), ("-12%", "down by 12%", "lower by 12%")
    assert [paid("+12%", x) for x in up] == [paid("-12%", x) for x in down] == [1] * 3
    assert [paid("+12%", x) for x in down] == [paid("-12%", x) for x in up] == [0] * 3


def test_minus_10_and_plus_10_percent_of_a_question_are_two_names():
    asked = "Was the change -10%, 0% or +10%?"
    for own, other in (("-10%", "+10%"), ("+10%", "-10%")):
        assert paid(own, own, asked) == 1
        several = other, "0%", "-10% or +10%", "-10%, 0% or +10%", f"{own}, {other}"
        assert {paid(own, x, asked) for x in several} == {0}
    assert paid("-10%", "down by 10%", asked) == paid("+10%", "up by 10%", asked) == 1


# --- any value, any notation ---------------------------------------------------------------------

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
)
ONES = (ONES + " sixteen seventeen eighteen nineteen").split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def spoken(n):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10 - 2] + (f"-{ONES[n % 10]}" if n % 10 else "")
    by, name = (100, "hundred") if n < 1000 else (1000, "thousand")
    return f"{spoken(n // by)} {name}" + (f" {spoken(n % by)}" if n % by else "")


def power(x):
    mantissa, exponent = f"{x:.6e}".split("e")
    return mantissa, str(int(exponent))


WRITTEN = {
    "plain": lambda x: f"{x:.6f}",
    "comma": lambda x: f"{x:,.4f}",
    "apostrophe": lambda x: f"{x:,.4f}".replace(",", "'"),
    "thin space": lambda x: f"{x:,.4f}".replace(",", "\u2009"),
    "narrow space": lambda x: f"{x:,.4f}".replace(",", "\u202f"),
    "decimal comma": lambda x: f"{x:.4f}".replace(".", ","),
    "points and comma": lambda x: f"{x:,.4f}".translate(str.maketrans(",.", ".,")),
    "e": lambda x: f"{x:.6e}",
    "power": lambda x: "{} x 10^{}".format(*power(x)),
    "superscript": lambda x: "{}×10{}".format(
        power(x)[0], power(x)[1].translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    ),
    "latex": lambda x: "${}\\times 10^{{{}}}$".format(*power(x)),
    "thousands": lambda x: f"{x / 1e3:.7f}k",
    "million": lambda x: f"{x / 1e6:.10f} million",
}


@settings(max_examples=150, deadline=None)
@given(
    st.floats(0.01, 999_999).map(lambda x: round(x, 4)),
    st.sampled_from(sorted(WRITTEN)),
    st.sampled_from(["", "-", "−", "minus ", "negative "]),
)
def test_any_number_in_any_notation_reads_back(x, how, sign):
    text = readable(f"The value is {sign}{WRITTEN[how](x)} here.")
    (q,) = quantities(text)
    assert q.value == pytest.approx(-x if sign else x, rel=1e-5, abs=1e-4) and not q.part
    assert text[q.end :] == " here."
    slack = 1e-5 * x + 1e-4
    assert agrees(q, -x if sign else x, slack)
    assert not agrees(q, x if sign else -x, slack)
    assert not agrees(q, q.value * 10, slack) and not agrees(q, q.value / 10, slack)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 999_999))
def test_number_words_read_back(n):
    assert [q.value for q in quantities(f"It has {spoken(n)} of them.")] == [n]


UNITS = ["mg", "g", "kg", "m", "km", "s", "min", "h", "J", "kJ", "K", "mol", "V", "m/s", "km/h"]


@settings(max_examples=100, deadline=None)
@given(
    st.floats(0.01, 9e5).map(lambda x: float(f"{x:.4g}")),
    st.sampled_from(UNITS),
    st.sampled_from(UNITS),
)
def test_a_changed_unit_does_not_read_back(x, own, other):
    assume(own != other)
    text = readable(f"It is {x!r} {own} here.")
    assert agrees(quantities(text)[0], x, unit=own)
    assert not agrees(quantities(text)[0], x, unit=other)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="0123456789.,-+/:^e x%±kKmg()$\\{}'\u202f½⁻²oraneto ", max_size=60))
@example("0{,}²")
def test_any_text_is_read_without_an_error(text):
    clean = readable(text)
    assert readable(clean) == clean or "\\" in clean or "$" in clean
    for q in quantities(clean):
        assert clean[q.start : q.end].strip() and q.value == q.value
        agrees(q, 1.0, unit="m")


DOSE = {"text": "50 mg/kg", "number": 50, "unit": "mg/kg"}


@pytest.mark.parametrize("by", [" per day", "/day", "/d", " each day", " every day", " daily"])
@pytest.mark.parametrize("prompt", ["What daily dose was given?", "How much was given per day?"])
def test_an_amount_may_say_the_unit_of_time_that_is_asked_for(prompt, by):
    """ "50 mg/kg per day" to "What daily dose?" was read as wrong: the key had no "per day"."""
    task = Task(id="t", prompt=prompt, truth={"facts": [DOSE]})

    def pay(text):
        return score(task, Response(task_id="t", id="r", text=text)).value

    assert pay(f"The mice received 50 mg/kg{by}.") == 1.0
    assert pay(f"40 mg/kg{by}.") == pay(f"50 mg{by}.") == pay("50 mg/kg per hour.") == 0.0
    assert pay(f"40 mg/kg{by}, 50 mg/kg{by}, 60 mg/kg{by}.") == 0.0


def test_a_key_with_its_unit_of_time_is_still_read_with_it():
    fact = {"text": "50 mg/day", "number": 50, "unit": "mg/day"}
    task = Task(id="t", prompt="What daily dose was given?", truth={"facts": [fact]})
    said = {x: Response(task_id="t", id="r", text=x) for x in ("50 mg per day", "50 mg per hour")}
    assert [score(task, r).value for r in said.values()] == [1.0, 0.0]


@pytest.mark.parametrize(
    "by", [" per day", "/day", " daily", " a day", " each week", " every month"]
)
def test_a_schedule_beside_the_amount_was_wrong_where_the_question_names_none(by):
    """6 of 11 usual wordings of "100 mg" were lost; a speed is still no distance."""
    asked = "What dose of zinc was given?"
    assert paid("100 mg", f"100 mg{by}", asked) == 1
    others = f"200 mg{by}", f"100 g{by}", f"100 mg/kg{by}", "100 mg per hour"
    assert {paid("100 mg", x, asked) for x in others} == {0}
    assert paid("100 mg/day", "100 mg per day", asked) == 1
    assert {paid("100 mg/day", f"100 mg{x}", asked) for x in ("/week", " per hour")} == {0}
    assert paid("5 km", "5 km/h", "How far did it run?") == 0


DAYS = """January 3, 2015|3 January 2015|the 3rd of January 2015|3 Jan 2015|Jan. 3rd, 2015|2015-01-03
|January 3 2015|3-Jan-2015|2015/01/03|January the 3rd, 2015|3 JAN 2015|2015-01-03T10:30:00Z"""
DAYS = DAYS.replace("\n", "").split("|")


def dated(key, text):
    """What a text earns, None where it is not read."""
    truth = {**truth_of({"expected_answer": key}), "verifiers": ["factual"]}
    task = Task(id="t", prompt="When was sample 4 taken?", truth=truth)
    part = verify("factual", task, Response(task_id="t", id="r", text=text))
    return None if part.details["unread"] else part.low


@pytest.mark.parametrize("key", DAYS[:-1])
def test_a_date_in_another_notation_than_the_keys_earned_what_a_wrong_one_does(key):
    """215 of 288 right dates were read as wrong: "January 3, 2015" for "3 January 2015"."""
    assert [d for d in DAYS if dated(key, f"It was taken on {d}.") != 1] == []
    wrong = "4 January 2015|January 3, 2014|2015-03-01|3 February 2015|2015|January 2015|13/01/2015"
    assert {dated(key, f"{d}.") for d in wrong.split("|")} == {0}
    assert dated(key, "It was not taken on January 3, 2015.") == 0
    assert dated(key, "03/01/2015.") is dated(key, "It was 1.3.2015.") is None
    assert dated(key, "03/02/2015.") == 0


def test_a_day_or_a_month_may_be_first_in_the_key_too():
    assert [dated("03/04/2015", x) for x in ("03/04/2015", "4 March 2015")] == [1, None]
    assert dated("14/03/2019", "March 14, 2019.") == dated("03/14/2019", "14.3.2019") == 1
    assert dated("liver", "03/04/2015.") == dated("14 March", "15/03/2019") == 0


def test_what_only_looks_like_a_date_stays():
    same = "It is 3.5|in May. 3 mice died|In March 2,500 mice|version 1.2.2015|3/4|GLDS-2015-01-03"
    assert [t for t in same.split("|") if readable(t) != t] == []
    assert [q.value for q in quantities(readable("2015-01-03"))] == [3, 2015]


OFTEN = " daily| once a day| a day| once daily| per day| every day|/day| once per day".split("|")


@pytest.mark.parametrize("by", OFTEN)
def test_once_a_day_and_daily_are_per_day(by):
    """ "5 mg/kg daily" was wrong where the key is "5 mg/kg/day"; a year was as good as a month."""
    asked = "What did group 4 get?"
    assert paid("5 mg/kg/day", f"5 mg/kg{by}.", asked) == paid(f"5 mg/kg{by}", "5 mg/kg/day.") == 1
    wrong = f"50 mg/kg{by}|5 µg/kg{by}|5 mg/kg weekly|5 mg/kg an hour|5 mg/kg twice daily"
    assert {paid("5 mg/kg/day", x, asked) for x in wrong.split("|")} == {0}
    of = "How fast is bone lost?"
    assert [paid("1.5% per month", f"1.5% {x}", of) for x in ("monthly", "a year")] == [1, 0]
    assert [paid("3 times per week", f"3 times {x}") for x in ("weekly", "a day")] == [1, 0]
    assert [paid("2 mL/h", f"2 mL {x}") for x in ("an hour", "hourly", "a minute")] == [1, 1, 0]


BARE = """0.4 per hour|0.4/h|0.4 an hour|0.4 h^-1|0.4|9.6 per day#0.4 per day|0.4/d
|0.4 per minute|0.4 a week|0.4 s^-1|0.4 annually|0.4 divisions per day|0.4 of the cells each month
3 per day|3 daily|three times a day|3 seizures a day|3#3 per hour|3/h|3 weekly|3 seizures per week
|3 epileptic seizures a month|3 times a year|3 per second
62 beats per minute|62/min|62 bpm|62 a minute#62 beats per second|62 beats per hour|62 per hour
12 mg per week|12 mg weekly|12 mg/wk#12 mg per day|12 mg a month|12 mg/h
1.5% per month|1.5% of bone monthly#1.5% per year|1.5% of bone mass per year|1.5% a decade"""


@pytest.mark.parametrize("row", BARE.replace("\n|", "|").split("\n"))
def test_a_rate_of_a_bare_number_was_paid_with_any_other_unit_of_time(row):
    """ "0.4 per day" earned what "0.4 per hour" does, 24 of 24 times; "3 weekly" what 3 a day does."""
    key, rights, wrongs = row.partition("|")[0], *row.split("#")
    of = "What was the rate of sample 4?"
    assert [x for x in rights.split("|") if paid(key, x, of) != 1] == []
    assert [x for x in wrongs.split("|") if paid(key, x, of) != 0] == []


def test_an_amount_is_of_the_unit_of_time_that_is_asked_for():
    of = "How many doses a day were given?"
    said = "6 doses", "6 doses a day", "6 doses daily", "6 doses, for a week", "6 doses a week"
    assert [paid("doses: 6", x, of) for x in said] == [1, 1, 1, 1, 0]
    assert paid("6 doses", "6 doses, one per day") == 1


SPANS = """2009 to 2013|2009-2013|2009–2013|between 2009 and 2013|from 2009 until 2013|2009 till 2013
|2009 through 2013|2009—2013#2009 to 2014|2008-2013|from 2009 until 2012|2009|until 2013|2009 or 2013
between 2009 and 2013|2009-2013|from 2009 until 2013#between 2009 and 2012|2013-2009
pages 12-15|12 to 15|between pages 12 and 15|from page 12 to page 15|12–15#page 12|11-15|12 or 15
18 to 65 years|18-65 years|18–65|between the ages of 18 and 65|18 years to 65 years
|from 18 until 65 years#18-65 months|18 to 60 years|65 years|16-65 years
5 to 20 mg|5-20 mg|5 mg to 20 mg|5 up to 20 mg|0.005 to 0.02 g#5-20 g|5 mg|up to 20 mg
-5 to 5|between -5 and 5|-5 to 5#5|-5"""


@pytest.mark.parametrize("row", SPANS.replace("\n|", "|").split("\n"))
def test_a_span_in_another_notation_than_the_keys_earned_what_a_wrong_one_does(row):
    """120 of 192 right spans were wrong: "2009-2013" and "between 2009 and 2013" for 2009 to 2013."""
    key, rights, wrongs = row.partition("|")[0], *row.split("#")
    assert [x for x in rights.split("|") if paid(key, x, "Which was it?") != 1] == []
    assert [x for x in wrongs.split("|") if paid(key, x, "Which was it?") != 0] == []
    assert paid(key, f"not {rights.split('|')[1]}", "Which was it?") == 0


@pytest.mark.parametrize("how", "{}-{}|between {} and {}|from {} until {}|{} to {}".split("|"))
def test_a_span_beside_the_spans_of_other_tasks_stays_right(how):
    """ "Between 2008 and 2014" was set aside as what is compared, where other tasks have spans."""
    keys = [(2008, 2014), (1990, 1994), (1985, 1990)]
    truth = truth_of({"expected_answer": "2008 to 2014"})
    truth["sisters"] = [f"{a} to {b}" for a, b in keys]
    task = Task(id="t", prompt="When did study 4 run?", truth=truth)
    said = [Response(task_id="t", id="r", text=how.format(*k).capitalize() + ".") for k in keys]
    assert [score(task, r).value for r in said] == [1, 0, 0]


def test_a_change_or_a_start_is_no_span():
    assert paid("2-3 fold increase", "a 2-3 fold decrease") == 0
    assert paid("2009", "from 2009 until 2013", "When did it start?") == 1


INTERVALS = """0.72 (95% CI, 0.60 to 0.86)|0.72 (95% CI: 0.60, 0.86)|0.72 (0.60-0.86)|0.72 (0.60–0.86)
0.72 [0.60, 0.86]|It was 0.72, 95% CI 0.60 to 0.86|HR = 0.72, 95% CI [0.60, 0.86]|0.72 (range 0.60-0.86)
0.72 with a 95% confidence interval of 0.60 to 0.86|0.72 (95% CI 0.60 to 0.86, p < 0.001)
0.72 (IQR 0.60-0.86)|0.72 (SD 0.06)|0.72 (SEM 0.06, n = 12)|0.72, n = 12"""


@pytest.mark.parametrize("said", INTERVALS.replace("\n", "|").split("|"))
def test_an_interval_beside_a_value_made_it_wrong(said):
    """92 of 202 right numbers with their interval earned nothing, and "(SD 41)" was paid for 41."""
    asked = "What was the hazard ratio?"
    assert paid("0.72", f"{said}.", asked) == 1
    assert paid("0.60", f"{said}.", asked) == paid("0.86", f"{said}.", asked) == 0
    assert paid("0.06", f"{said}.", asked) == paid("12", f"{said}.", asked) == 0
    assert paid(said, f"{said}.", asked) == 1  # the key has it as well


def test_what_only_looks_like_a_value_with_its_interval_stays():
    asked = "What was the hazard ratio?"
    for said in ("0.72 (0.80 to 0.86)", "0.60 (0.72 to 0.86)", "0.72, 0.73, 0.74", "0.72 or 0.73"):
        assert paid("0.72", said, asked) == 0
    assert paid("0.60 to 0.86", "0.72 (0.60 to 0.86)", "Which interval was found?") == 0
    assert paid("0.60 to 0.86", "0.60 to 0.86", "Which interval was found?") == 1
    assert paid("12", "It was 0.72, n = 12.", "How many mice flew?") == 1
    assert paid("4 g", "SD 4 g", "What was the SD?") == 1


SPUN = {"text": "12000 × g", "number": 12000}
TURNED = {"text": "800 rpm", "number": 800}


@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.parametrize(
    ("fact", "said", "value"),
    [
        (SPUN, "12,000 × g|12,000 x g|12000×g|12,000xg|12,000 g|12,000 x g for 10 min", 1.0),
        (SPUN, "12,000 rpm|12000 RPM|12,000 revolutions per minute|12,000 Hz|12,000 g/L", 0.0),
        (TURNED, "800 rpm|800 revolutions per minute", 1.0),
        (TURNED, "800 × g|800 x g|800xg", 0.0),
    ],
)
def test_a_force_of_the_centrifuge_is_a_unit(fact, said, value, unit):
    """ "12,000 rpm" was paid for 12,000 × g: "x g" was read as no unit, so that any would do."""
    key = fact | ({"unit": fact["text"].split(" ", 1)[1]} if unit else {})
    asked = "How was it spun?"
    assert {s: v for s in said.split("|") if (v := paid(key, s, asked)) != value} == {}


def graded(prompt, wanted, text):
    """The value of an answer to a question with one fact; None where it is not read."""
    task = Task(id="t", prompt=prompt, truth={"facts": [wanted]})
    part = verify("factual", task, Response(task_id="t", id="r", text=text))
    return part.low if part.low == part.high else None


MELTS = "What is the melting point of gallium{}?"


@pytest.mark.parametrize(
    "wanted",
    [
        {"text": "29.8 degrees", "number": 29.8, "tolerance": 0.2},
        {"text": "29.8°"},
        {"text": "29.8", "number": 29.8, "tolerance": 0.2, "unit": "degrees"},
    ],
)
def test_degrees_are_of_the_scale_that_the_question_asks_for(wanted):
    """Both 29.8 °C and 29.8 °F were right, and 85.6 °F and 302.95 K as well, where the key said
    "29.8 degrees" and the question "in degrees Celsius"."""
    for end in (" in degrees Celsius", " (°C)", " in Celsius, if it boils at 4044 °F"):
        for text in ("29.8 °C", "29.8 degrees", "It is 29.8°.", "29.8 degrees celsius", "29.8"):
            assert graded(MELTS.format(end), wanted, text) == 1, (end, text)
        for text in ("29.8 °F", "29.8 degrees fahrenheit", "29.8 K", "29.8 deg F", "30 kg"):
            assert graded(MELTS.format(end), wanted, text) == 0, (end, text)
        assert graded(MELTS.format(end), wanted, "302.95 K") == 1  # converted


def test_degrees_of_which_nothing_says_the_scale_are_not_read_as_one():
    """An answer in Celsius and one in Fahrenheit were paid alike, though they contradict."""
    wanted = {"text": "29.8 degrees", "number": 29.8}
    for end in ("", " in Celsius or Fahrenheit"):
        assert graded(MELTS.format(end), wanted, "It is 29.8 degrees.") == 1
        for text in ("29.8 °F", "29.8 °C", "29.8 degrees Fahrenheit", "85.64 °F"):
            assert graded(MELTS.format(end), wanted, text) is None, (end, text)
        assert graded(MELTS.format(end), wanted, "31 °C") == 0
    assert graded("At 20 °C, what is the angle?", fact(90, "degrees"), "90°") == 1


def test_a_check_of_degrees_takes_the_scale_of_the_prompt():
    def status(prompt, answer):
        check_ = {"name": "number", "value": 30, "unit": "degrees"}
        return check(
            Task(id="t", prompt=prompt),
            Response(task_id="t", id="r", text=answer),
            Criterion(id="c", text="x", check=check_),
        ).status

    assert status("How hot is it in Celsius?", "30 °C") == "met"
    assert status("How hot is it in Celsius?", "30 °F") == "unmet"
    assert status("How hot is it?", "30 °F") == "unknown"  # it was met
    assert status("How hot is it?", "30 degrees") == "met"


@pytest.mark.parametrize(
    ("text", "right", "wrong"),
    [
        (
            "20 dollars",
            "$20|USD 20|20 bucks|2000 cents|2,000¢|20 US dollars",
            "20 cents|20¢|20 yen",
        ),
        (
            "$20",
            "20 dollars|US$20|2000 cents",
            "20 cents|20 dimes|20 pence|€20|EUR 20|¥20|20 pesos",
        ),
        ("20 cents", "20¢|$0.20|0.20 dollars", "20 dollars|$20|20 pence"),
        ("20 euros", "€20|20 EUR|2000 euro cents", "20 cents|20 euro cents|20 francs"),
        ("5 pounds", "£5|500 pence|100 shillings", "5 pence|5p|5 shillings|5 kg"),
        ("3 base pairs", "3 bp|3 nucleotides|0.003 kb|1 codon", "3 kilobases|3 kb|3 codons|3 Mb"),
        ("3 kilobases", "3 kb|3000 bp|3,000 base pairs", "3 bp|3 bases|3 megabases"),
        ("5 ppm", "5 ppm|5000 ppb", "5 ppb|5 IU"),
    ],
)
def test_parts_of_money_and_multiples_of_bases_are_other_units(text, right, wrong):
    """Twenty cents were paid for twenty dollars, three kilobases for three base pairs."""
    number = next(q.value for q in quantities(text))
    wanted = {"text": text, "number": number}
    for answer in right.split("|"):
        assert graded("How much is it?", wanted, f"It is {answer}.") == 1, answer
    for answer in wrong.split("|"):
        assert graded("How much is it?", wanted, f"It is {answer}.") == 0, answer


def test_the_names_of_what_is_counted_are_no_rivals_of_their_number():
    """ "Four strings (G, D, A and E)." earned a quarter: the strings' names counted as guesses."""
    asked, wanted = "How many strings does a violin have?", {"text": "four", "number": 4}
    for text in (
        "Four strings (G, D, A and E).",
        "4: G, D, A, E",
        "It has four. They are G, D, A and E.",
    ):
        assert graded(asked, wanted, text) == 1, text
    for text in ("Four (three, five or six).", "Five strings (G, D, A, E and C)."):
        assert graded(asked, wanted, text) == 0, text
    assert graded(asked, wanted, "A couple, a dozen, four, a score.") < 1
