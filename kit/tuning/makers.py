"""From a judge's name and a prompt to a judge: what a workbench and a search change and ask."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

from ..errors import JudgeDownError, KitError
from ..judge import loop, templates
from ..judge.asking import Reply, chat, once
from ..judge.factory import judge_of, parts
from ..judge.prices import Usage
from ..judge.records import Call, Forecast
from ..records import fingerprint

MakeJudge = Callable[..., Any]
ROOM = 1200  # tokens for a rewritten prompt
ASKED = ("endpoint", "small")  # judges that are asked with a prompt


def maker(judge: Any) -> MakeJudge:
    """`make(prompt, **settings)` -> judge, for a judge's name or mapping (or such a function).

    The prompt takes the place of the template's system text. Fences, ids and the form of the reply
    stay the kit's own, so that no prompt can break the reading. settings : how="one" and other
    options of the judge.

    >>> make = maker({"endpoint": "m", "base_url": "http://127.0.0.1:9/v1"})
    >>> make("Be strict.", how="one").template.system
    'Be strict.'
    """
    if callable(judge) and (isinstance(judge, type) or not hasattr(judge, "verdicts")):
        return judge
    kind, subject, options = parts(judge) if isinstance(judge, (str, dict)) else ("", None, {})
    if kind not in ASKED:
        raise KitError(
            f"{judge!r} has no prompt to change",
            where="judge",
            fix="give 'endpoint:MODEL', 'small', or a function prompt -> judge",
        )
    frame = options.pop("template", None)

    def make(prompt: str, **settings: Any) -> Any:
        more = {"template": frame, **options, **settings}
        form = _worded(more.pop("template"), kind, more, prompt)
        return judge_of({kind: subject, **more, "template": form})

    return make


def frame_of(judge: Any) -> str:
    """The system text that this judge has now: where a workbench and a search begin."""
    if callable(judge):
        return templates.load("rubric").system
    kind, _, options = parts(judge)
    return _frame(options.get("template"), kind, options).system


def name_of(judge: Any) -> str | None:
    """ "endpoint:MODEL", say; None for a function: nothing tells two apart."""
    return None if callable(judge) else ":".join(map(str, filter(None, parts(judge)[:2])))


def _frame(frame: Any, kind: str, options: dict[str, Any]) -> Any:
    if isinstance(frame, templates.Template):
        return frame
    one = "single" if options.get("how") in ("one", 1) else "rubric"
    return templates.load(frame or ("short" if kind == "small" else one))


def _worded(frame: Any, kind: str, options: dict[str, Any], prompt: str) -> Any:
    """The judge's template with this prompt as its system text."""
    return dataclasses.replace(
        _frame(frame, kind, options), system=prompt, name="tuned-" + fingerprint(prompt)[:8]
    )


class Reflector:
    """A language model that rewrites prompts, through the ledger: the same question is paid once.

    model : a judge's name or mapping, or None: the judge that `make` gives is asked in its own
    chat; or a function prompt -> text, remembered by its attribute `name` (one without is asked
    anew each time: nothing else tells two functions apart). budget : a kit.Budget; of a function
    only the call counts, what it costs is not known.
    """

    def __init__(self, model: Any, make: MakeJudge, *, ledger: Any = None, budget: Any = None):
        self.model, self.ledger, self.budget = model, ledger, budget
        if not callable(model):
            self.judge = (make if model is None else maker(model))("You rewrite prompts.")

    def __call__(self, prompt: str) -> str:
        who = self._who()
        ledger = self.ledger if who else None
        asked = once(lambda: self._reply(prompt), prompt, who=who, name="reflection", ledger=ledger)
        reply, _, why = loop.run(asked)
        return _text(reply, why)

    def forecast(self, tokens_in: int) -> Forecast:
        """What a question of so many tokens may cost."""
        price = None if callable(self.model) else getattr(_caller(self.judge), "price", None)
        return Usage(tokens_in=tokens_in, tokens_out=ROOM).forecast(price)

    async def _reply(self, prompt: str) -> Reply:
        if callable(self.model):
            if self.budget is not None:
                one = Forecast(calls=1, cost=0.0)
                self.budget.settle(self.budget.reserve(one), one)
            call = Call(id="", judge="", model=str(self._who()), endpoint="")
            said = await asyncio.to_thread(self.model, prompt)  # it may ask a judge of its own
            return _text(said, "not a text, or an empty one"), call, ""
        if not hasattr(self.judge, "chat") and not hasattr(self.judge, "ready"):
            raise KitError(
                "this judge cannot be asked to rewrite a prompt",
                where="reflect",
                fix="give reflect=, a function prompt -> text, or 'endpoint:MODEL'",
            )
        return await chat(self.judge, prompt, ROOM, self.ledger, self.budget)

    def _who(self) -> Any:
        """All that shapes a reply but the question; None where nothing tells."""
        if callable(self.model):
            return getattr(self.model, "name", None)
        place = getattr(_caller(self.judge), "place", None)
        return [getattr(self.judge, n, None) for n in ("model", "params")] + [place]


def _caller(judge: Any) -> Any:
    return getattr(judge, "caller", None)


def _text(reply: Any, why: str) -> str:
    """The reply, where it is a text; JudgeDownError that says why not."""
    if isinstance(reply, str) and reply.strip():
        return reply
    raise JudgeDownError(
        f"the rewriting model gave nothing: {why}",
        where="reflect",
        fix="run the same again: what was judged and rewritten is kept in the ledger",
    )
