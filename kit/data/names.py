"""What the name of a field and its value say, however they are spelled: of a criterion's sign, of
what it weighs, of a row's side."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from ..records import is_held_out
from .values import as_text, number, parsed_json

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\dA-Z_]+|\d+")
_OF = re.compile(r"(?:(?:criteri(?:on|a)|rubrics?|item|rule)_)+(?=.)")
# how an object says that its criterion must not be met, and that it must: a field's word, or the
# name of one that is true
AGAINST = (
    "negative|neg|-|-1|minus|penalty|must not|negatives|penalties|\u2212|should not|dont|don't"
    "|do not|\u22121|forbidden|prohibited|avoid|cons|bad|undesirable|undesired|unwanted"
    "|deduct|deductions|demerit|malus|negativ|négatif|négative|negativo|negativa"
    "|负向|负面|扣分|扣分项|减分|减分项|禁止|減点|減点項目|감점|감점항목".split("|")
)
WAY = dict.fromkeys("positive positives pos + 1 plus desirable desired wanted good".split(), 1)
WAY |= dict.fromkeys(AGAINST, -1)
TRUTH = {**dict.fromkeys(("true", "yes", "1"), 1), **dict.fromkeys(("false", "no", "0"), -1)}
SIGNS = ("polarity", "sign", "type", "direction", "valence", "effect")
KINDS = ("type", "kind", "category", "class", "nature", "group")
PITFALL = re.compile(r"(?:is )?(?:pitfall|negative|penalty|undesir|unwanted)|anti criteri")
TYPED = re.compile(  # such a word alone, before a colon or before what is so: no "penalty kick"
    rf"(?:{PITFALL.pattern})\w*(?:\W*\Z|:| (?:criteri|rubric|item|point|aspect|behaviou?r))"
)
CONTENT = re.compile(  # what an answer is to say or to be like
    r"(?:.*_)?(?:gold|answer|hint|keyword|verb|sentiment|mood|tone|emotion|result|charge)s?"
)
COSTS = re.compile(  # the same of a criterion's own fields alone: of a task's, it is a topic
    r"(?:(?:\w+_)?type|kind|nature|polarity|sign|direction|valence|effect) (?:is )?(?:deduction|con"
    r"|subtract|violation|red flag|hard fail(?:ure)?)s?(?: (?:criteri(?:on|a)|rubric|item))?"
    r"|(?:type|kind|category|class|nature|group|section|dimension|tags) (?:deduction|demerit"
    r"|anti pattern|deal ?breaker|disqualifier|no go|minus point|subtract|don['’]?t|abz[uü]g"
    r"|contra)s?"
    r"|(?:type|kind|category|class|nature|group|section|dimension|tags) (?:(?:los[es]s?|minus)"
    r" points?|points? (?:off|lost|deducted)|unacceptable|(?:not|un)(?: ?desired| ?wanted)"
    r"|nicht erlaubt)"
    r"|(?:is_)?(?:violation|deduction|red_flag|hard_fail) (?:true|yes|1)"
)
WEIGHS = re.compile(  # any word of a name begins so: it says what a criterion is worth
    r"(?:.*_)?(?:weigh|point|pts|mark|scor|max|worth|importan|priorit|deduct|penal|value|credit"
    r"|(?<!_)coeff|poids|gewicht|权重|分值|配点|배점)"
)
OTHER = re.compile(  # numbers that weigh nothing
    r"(?:.*_)?(?:id|year|date|time|timestamp|index|idx|indice|seed|page|line|position|token|length"
    r"|count|offset|start|end|order|rank|word|char|character|sentence)s?\Z|(?:is|has|valid)_"
)
MUCH = re.compile(r"\W*\d+(?:[.,/]\d+)?\s*(?:%|points?|pts?|marks?)?\W*\Z", re.I)
SIDES = re.compile(
    r"(?:.*_)?(?:(?:data_?)?set|(?:data)?splits?|subset|partition|fold|usage)(?:_(?:name|type))?"
    r"|phase|sample_type|data_type|train_or_test"
)
ASIDE = re.compile(  # a field that is true where the row is not trained on
    r"(?:(?:is|in|for|use_for)_?(?:test|val|validation|dev|eval|evaluation)|test|(?:is_?|in_?)?"
    r"(?:held|hold)_?out)(?:_?(?:set|split|only))?|(?:val|dev|eval|evaluation)_only"
    r"|(?:do_not|not_for|no|exclude_from|dont)_train(?:ing)?|reserved_for_(?:test|eval)\w*"
)
TRAINED = re.compile(
    r"(?:(?:is|in|for|use_for|use_in)_)?train(?:ing)?(?:_?(?:set|split))?|(?:is_)?trainable"
)


@lru_cache(maxsize=10_000)
def spelled(name: str) -> str:
    """A name in one spelling: its words in lower case, "_" between.

    >>> spelled("isTestSet"), spelled("rubric - 1. Weight"), spelled("__split__")
    ('is_test_set', 'rubric_1_weight', 'split')
    """
    return "_".join(_PART.findall(name)).casefold()


@lru_cache(maxsize=10_000)
def own(name: str) -> str:
    """The same without what the field is of.

    >>> own("criterionType"), own("rubric_item_weight"), own("criteria")
    ('type', 'weight', 'criteria')
    """
    return _OF.sub("", spelled(name), count=1)


def _word(value: Any) -> str:  # of the lists above: "_" and "-" within it are blanks
    return re.sub(r"\b[\s-]+\b|_", " ", as_text(value).strip().casefold())


def sign(name: str, value: Any) -> int | None:
    """-1 or 1 where a field of a criterion says that it must not, or must, be met; else None.

    >>> sign("criterion_type", "negative"), sign("isPositive", False), sign("avoid", "yes")
    (-1, -1, -1)
    >>> sign("type", "positive"), sign("kind", "negative"), sign("penalty", 1)
    (1, None, None)
    """
    field = own(name)
    way = WAY.get(field.removeprefix("is_").replace("_", " "))
    if not way and field not in SIGNS:
        return None
    said = _word(value)
    if field in SIGNS:
        return WAY.get(said)
    return None if said not in TRUTH or weighs(name, value) else way * TRUTH[said]


def against(item: Mapping[str, Any]) -> bool:
    """True where an object says that what it holds must not be met."""
    return any(sign(str(k), v) == -1 for k, v in item.items())


def turns(group: str) -> bool:
    """True for the name of a group that must not be met, if it cannot be a topic of the answer.

    >>> turns("Negative"), turns("must not"), turns("Cons")
    (True, True, False)
    """
    topics = ("cons", "negatives", "penalties", "deductions")
    return against({"polarity": group}) and _word(group) not in topics


def pitfall(name: str, value: Any) -> bool:
    """True for a field that calls a criterion a pitfall, where that is not read as its sign.

    >>> pitfall("category", "Pitfall: length"), pitfall("mode", "negative"), pitfall("x", "-")
    (True, True, False)
    >>> pitfall("criterion_type", "deduction"), pitfall("type", "deduction")
    (True, False)
    """
    field = own(name)
    for one in value if field == "tags" and isinstance(value, list) else [value]:
        said = _word(one)
        whole = not CONTENT.fullmatch(field) and (
            (said in AGAINST and said[-1:].isalpha()) or PITFALL.fullmatch(said)
        )
        flagged = TRUTH.get(said) == 1 and any(
            PITFALL.match(w) or w in AGAINST for w in field.split("_")
        )
        if (
            whole
            or flagged
            or (field in KINDS and TYPED.match(said))
            or (field != spelled(name) and COSTS.fullmatch(f"{field} {said}"))
        ):
            return not weighs(name, one)
    return False


def weighs(name: str, value: Any) -> bool:
    """True for a number under a name that says what a criterion is worth.

    >>> weighs("maxPoints", 3), weighs("weight_percentage", "40%"), weighs("max_tokens", 3)
    (True, True, False)
    """
    field = own(name)
    much = number(value) is not None or (isinstance(value, str) and MUCH.match(value))
    return bool(much and WEIGHS.match(field) and not OTHER.match(field))


def mark(name: str, value: Any) -> str | None:
    """The split of which a field says that the row is in, "" where it says training; else None.

    >>> mark("dataset_split", "test"), mark("isTest", True), mark("is_train", False)
    ('test', 'held-out', 'held-out')
    >>> mark("is_test", 0), mark("subset", "web development"), mark("is_valid", True)
    ('', None, None)
    """
    field = spelled(name)
    said = "" if value is None else as_text(value).strip().casefold()
    if SIDES.fullmatch(field) and (isinstance(value, str) or not said):
        part = said if "split" in field else re.sub(r"[\W\d_]+", "", said)  # no part of it
        rest = None if said and not said.startswith("train") else ""
        return value if is_held_out(part) else rest
    flags = ((ASIDE, 1), (TRAINED, -1))
    held = next((way for names, way in flags if names.fullmatch(field)), 0)
    return "held-out" * (TRUTH.get(said) == held) if held and (said in TRUTH or not said) else None


def marked(fields: Mapping[str, Any], deep: bool = True) -> str | None:
    """The first mark among these fields, or in one of them, that holds a row out of training.

    >>> marked({"dataset_split": "test"}), marked({"info": {"split": "dev"}})
    ('test', 'dev')
    >>> marked({"is_test": True}), marked({"subset": "web development", "category": "test"})
    ('held-out', None)
    """
    found = next((m for k, x in fields.items() if (m := mark(str(k), x))), None)
    inner = [parsed_json(x) for x in fields.values()] if deep and not found else []
    return found or next(
        (m for x in inner if isinstance(x, Mapping) and (m := marked(x, False))), None
    )
