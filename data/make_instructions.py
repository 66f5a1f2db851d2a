"""Writes `instructions.jsonl`: one short sentence about a topic, under a constraint that changes.

    python data/make_instructions.py OUT.jsonl --seed 1       # the same design, other prompts

240 prompts to train on have one constraint each. 84 held-out ones have topics, words and openers of
their own; 28 of them join two constraints, as no training prompt does. "Use this word instead of
that one" stands beside "use both", so that copying what is quoted passes about half of them. Code
decides everything. An answer earns a share for each constraint (of two words, for each)
and one for all in one finished sentence, nothing where it misses its topic, copies, repeats itself
or talks about the instruction.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kit.records import Criterion, Task

Check = dict[str, Any]
Asked = tuple[str, dict[str, Check]]  # what the prompt says, and criterion -> check
TAGS = ("constraint",)
SYSTEM = "Answer with one short, simple sentence."
TRAINED, HELDOUT = 240, 84
# How often each is asked for; rarer where SmolLM2-135M never meets it: it then learns nothing.
MIX = {
    "train": ("instead", "pair", "begin", "use") * 3
    + ("instead", "pair", "question", "instead"),
    "heldout": (
        "instead",
        "pair",
        "instead",
        "begin",
        "instead",
        "use",
        "instead",
        "question",
    ),
}
JOINED = (
    ("begin", "use"), ("begin", "instead"), ("use", "begin"), ("instead", "begin"),
    ("use", "question"), ("instead", "question"),
)  # fmt: skip
INSTEAD = (
    'Use the word "{a}" instead of the word "{b}".',
    'Instead of the word "{b}", use the word "{a}".',
)
TOPICS = {
    "train": """apples autumn bakeries ballet bears beaches bridges butter camels canals candles
        chairs chocolate clouds clowns comets cousins deserts dolphins drums eagles elephants
        factories farmers ferries fireworks fog gloves grandmothers guitars hedges holidays
        honey islands jazz kites lemons lighthouses maps mirrors moles monkeys mushrooms
        neighbours onions orchestras owls pancakes parks pillows pirates planets postcards
        puzzles rabbits rainbows rice sailors sheep snow spiders storms sugar tailors thunder
        tomatoes trains tunnels twins umbrellas violins volcanoes weddings whales wizards""",
    "heldout": """actors ants astronauts badgers barns beavers bees beetles bells bicycles buses
        cabbages cakes carpets carrots castles cathedrals caves chess cinemas cliffs coins crabs
        crickets dentists ducks elevators falcons feathers festivals fishermen fossils foxes frogs
        geese glaciers helicopters hens horses hospitals jugglers kangaroos kitchens ladders lambs
        libraries lizards lobsters magicians marathons mice mills museums nuts oceans orchards
        ostriches otters oysters parrots peacocks pears penguins pianos pigs poems potatoes
        pumpkins radios robots rockets roses salmon sharks soap sparrows swimming tea toys
        tractors turtles waiters waterfalls wolves""",
}
WORDS = {
    "train": """acorn afternoon airport anchor apron arrow attic badge bakery balloon bandage
        basket beautiful bench blanket blue board boat bold border boring bottle branch bread
        breeze brick broken broom brother brown bucket busy button calendar camera candle card
        careful carpenter ceiling chain cheap cheerful cheese clean clever clock closet cloudy
        coat cold comb corner cousin crown cup curious curtain daily dark deep desk dinner
        distant door dragon drawer dry dull dusty eager early elbow empty engine evening fair
        family famous fast favourite feast field floor foggy fork fresh friend funny garden gate
        gentle giant glass goat grandfather grass green grey hand happy hat heavy hidden hill
        holiday honest humble hungry jar jolly journey judge keyboard kind kitten lake lantern
        large leaf letter light little lonely loud lovely lucky market mild minute money morning
        mountain mud narrow nest new noisy notebook old orange pale paper path patient pebble
        pencil pillow pink plain plate playful pocket pond proud queen quiet rainy rare red
        river road roof rope rough round sailor salty sandy school secret sharp shelf shiny
        shirt short shy silent silver simple sleepy slow small smooth soft song soup spoon
        square stairs station steep sticky stone stormy stranger street strong sudden summer
        sweater sweet table tail tall tame thin thirsty tired torch towel tower town tree truck
        uncle valley visit wall warm watch water wet white wide wild window windy wing winter
        wise wolf wooden yard yellow young""",
    "heldout": """alarm ancient apricot balcony bitter blossom brass brave bright bronze calm
        carriage cellar cherry chilly clay clumsy coffee copper cottage crimson crooked crowd
        damp desperate dinosaur doctor dusk envelope faint fence ferocious fiddle flame foreign
        forest fragile freckle gift golden grateful gravel grumpy hammer harbour helmet hollow
        hotel idle ivory jacket jealous jewel keen kettle ladybird lamp lavender lazy magic
        magnet marble meadow mighty mustard needle nervous nurse nutmeg parcel peach peculiar
        pepper picture pigeon plump polite porch puddle purple quilt raincoat rapid restless
        ribbon rival rusty sapphire saucer scarf scholar severe shadow shepherd shoulder sister
        skeleton sleeve slippery sparkling statue stubborn suitcase sunny sunset swift tangled
        teacher tender thistle thread ticket timid tiny trumpet turnip uncommon velvet village
        vivid walnut weary wheel whistle wicked widow wrinkled zebra""",
}
OPENERS = {
    "train": """after although because during each even every everyone few here if in later many
        more most much nearly never next nobody often once perhaps several since then they today
        together usually we when whenever wherever while with without you""",
    "heldout": """across almost around as before behind between for from hardly just maybe now
        on only somebody some soon still there this though tomorrow until whatever yesterday""",
}


def tasks(seed: int = 0) -> list[Task]:
    """The whole set; the same seed gives the same prompts.

    >>> made = tasks()
    >>> [sum(t.split == s for t in made) for s in ("train", "heldout")], made[1].prompt
    ([240, 84], 'Write one short sentence about autumn. Use the words "camera" and "comb".')
    """
    return [
        _drawn(f"{split}-{i:03d}", split, i, random.Random(f"{seed}/{split}/{i}"))
        for split, count in (("train", TRAINED), ("heldout", HELDOUT))
        for i in range(count)
    ]


def _drawn(name: str, split: str, i: int, rng: random.Random) -> Task:
    topics = TOPICS[split].split()
    topic, families = topics[i % len(topics)], _families(split, i)
    words = [w for w in WORDS[split].split() if w not in topic and topic not in w]
    openers = OPENERS[split].split()
    asked = [
        _constraint(f, rng.sample(words, 2), rng.choice(openers), i)
        for f in families
    ]
    return task_of(name, split, topic, families, asked)


def task_of(
    name: str,
    split: str,
    topic: str,
    families: Sequence[str],
    asked: Sequence[Asked],
) -> Task:
    """One task; asked : per family what the prompt says, and what decides it."""
    each = [
        Criterion(
            id=f"{f} {i}" if len(checks) > 1 else f,
            text=text,
            check=check,
            tags=TAGS,
        )
        for f, (_, checks) in zip(families, asked, strict=True)
        for i, (text, check) in enumerate(checks.items(), 1)
    ]
    said = [
        f"Write one short sentence about {topic}.",
        *(text for text, _ in asked),
    ]
    return Task(
        id=name,
        prompt=" ".join(said),
        system=SYSTEM,
        criteria=(
            *_gates(topic),
            *each,
            *_sentence([c.id for c in each], families),
        ),
        split=split,
        group=topic,
        kind="+".join(families),
    )


def _families(split: str, i: int) -> Sequence[str]:
    if split == "heldout" and i % 3 == 2:
        return JOINED[i // 3 % len(JOINED)]
    mix = MIX[split]
    return (mix[(i if split == "train" else i - i // 3) % len(mix)],)


def _constraint(family: str, words: Sequence[str], opener: str, i: int) -> Asked:
    """What the prompt says, and the checks; of two words each pays, or pairs are hardly learned."""
    a, b = words
    if family == "pair":
        each = {
            f'It has the word "{w}".': {"name": "contains", "all": [w]}
            for w in words
        }
        return f'Use the words "{a}" and "{b}".', each
    said, check = _one(family, a, b, opener, i)
    return said, {said: check}


def _one(family: str, a: str, b: str, opener: str, i: int) -> tuple[str, Check]:
    if family == "begin":
        check = {"name": "regex", "pattern": rf"\A{opener}\b", "case": False}
        return f'Begin with the word "{opener}".', check
    if family == "use":
        return f'Use the word "{a}".', {"name": "contains", "all": [a]}
    if family == "instead":
        said = INSTEAD[i // 4 % 2].format(a=a, b=b)
        return said, {"name": "contains", "all": [a], "none": [b]}
    return "Make it a question.", {"name": "regex", "pattern": r"\A[^.!?]+\?\Z"}


FINISHED = r"\A[^.!?\s]+(?: [^.!?\s]+){4,19}"
# What stands between plain words, so that a list in disguise is not one word.
_BETWEEN = r"[\s!-/:-@\[-`{-~‘’“”–—…]"
SHORT = (
    rf"\A{_BETWEEN}*[A-Za-z0-9]+(?:{_BETWEEN}+[A-Za-z0-9]+){{0,21}}{_BETWEEN}*\Z"
)


def _gates(topic: str) -> list[Criterion]:
    aside = ["word", "words", "sentence", "sentences", "begin", "question"]
    rows: list[tuple[str, str, Check]] = [
        (
            "topic",
            "It names its topic.",
            {"name": "contains", "any": [topic, *_singular(topic)]},
        ),
        (
            "own",
            "It has four words that the prompt has not.",
            {"name": "own_words", "min": 4},
        ),
        (
            "copy",
            "It copies no five words in a row.",
            {"name": "no_copy", "words": 5},
        ),
        (
            "repeat",
            "It does not repeat itself.",
            {"name": "unique_words", "min_share": 0.7},
        ),
        (
            "short",
            "It has at most 22 words, in plain letters.",
            {"name": "regex", "pattern": SHORT},
        ),
        (
            "aside",
            "It is not about the instruction.",
            {"name": "contains", "none": aside},
        ),
    ]
    return [
        Criterion(
            id=i, text=text, check=check, weight=0.0, required=True, tags=("gate",)
        )
        for i, text, check in rows
    ]


def _sentence(
    constraints: Sequence[str], families: Sequence[str]
) -> list[Criterion]:
    """A share of the reward: finishing is paid only together with the constraints, never alone."""
    asks = "question" in families
    one = f"One finished {'question' if asks else 'statement'} of 5 to 20 words."
    whole = "All of it, in one finished sentence."
    end = {"name": "regex", "pattern": FINISHED + (r"\?\Z" if asks else r"[.!]\Z")}
    both = {"name": "all_met", "of": [*constraints, "finished"]}
    return [
        Criterion(id="finished", text=one, check=end, weight=0.0),
        Criterion(id="whole", text=whole, check=both),
    ]


ONE = {
    "buses": "bus",
    "geese": "goose",
    "mice": "mouse",
    "wolves": "wolf",
    "fishermen": "fisherman",
}


def _singular(topic: str) -> list[str]:
    """The topic's singular, where it is a plural.

    >>> _singular("bakeries"), _singular("beaches"), _singular("jazz"), _singular("mice")
    (['bakery'], ['beach'], [], ['mouse'])
    """
    if topic in ONE:
        return [ONE[topic]]
    for end, one in (
        ("ies", "y"),
        ("ches", "ch"),
        ("oes", "o"),
        ("xes", "x"),
        ("s", ""),
    ):
        if topic.endswith(end):
            return [topic.removesuffix(end) + one]
    return []


def write(path: str | Path, seed: int = 0) -> None:
    """The set as JSONL, one task a line."""
    lines = [json.dumps(_row(t), ensure_ascii=False) for t in tasks(seed)]
    Path(path).write_text("\n".join(lines) + "\n", "utf-8")


def _row(task: Task) -> dict[str, Any]:
    """A task without what a reader assumes anyway."""
    criteria = [
        _said(c, ("id", "text", "weight", "check", "required", "tags"))
        for c in task.criteria
    ]
    named = _said(task, ("id", "prompt", "system", "split", "group", "kind"))
    return {**named, "criteria": criteria}


def _said(record: Any, names: Sequence[str]) -> dict[str, Any]:
    defaults = {f.name: f.default for f in dataclasses.fields(record)}
    values = {n: getattr(record, n) for n in names}
    return {n: v for n, v in values.items() if v != defaults[n]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", help="the file to write, JSONL")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    write(given.out, given.seed)
