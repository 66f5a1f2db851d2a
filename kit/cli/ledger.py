"""The ledger: what was judged and paid, and what to do with it.

explain KEY            everything that is known of a verdict (the beginning of a key will do)
costs                  the cost book, per judge, model and endpoint
export FILE            verdicts and replies as JSONL, for others to replay
import FILE            read such a file; a line that no ledger wrote is refused, and nothing is kept
merge LEDGER ...       add other ledgers' verdicts and calls; of two for one key a decided one
                       stays before an unknown one, then the newer (so does import)
prune                  forget verdicts (--days, --judge, --unknown); the cost book stays
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import KitError
from .common import LEDGER, Options, Output, arg, ledger_of

HELP = "explain, costs, export, import, merge, prune: what was judged and paid"


def run(args: Options) -> Output:
    """Do what was asked."""
    from ..judge.ledger import Ledger

    action, what = args.action, args.what
    most = {"costs": 0, "prune": 0, "merge": 1000}.get(action, 1)
    if len(what) > most or (most and not what):
        takes = {0: "no name", 1: "one name"}.get(most, "names")
        raise KitError(f"{action} takes {takes}", where="kit ledger", fix="see its --help")
    path = ledger_of(args).expanduser()
    known = path.exists()
    writes = action in ("import", "merge") or (action == "prune" and known)
    with Ledger(path, readonly=not writes) as book:
        try:
            return ACTIONS[action](book, what, args)
        finally:
            if not known and not _holds(book):  # refused, or a full disk: none is left behind
                book.close()
                for end in ("", "-wal", "-shm"):
                    path.with_name(path.name + end).unlink(missing_ok=True)


def _holds(book: Any) -> bool:
    """Whether anything was kept; on a full disk a new ledger may not even be read."""
    try:
        return bool(len(book) or book.costs())
    except KitError:
        return False


def _explain(book: Any, what: list[str], args: Options) -> Output:
    found = book.explain(what[0].encode("utf-8", "replace").decode())
    return Output(found, explained(found))


def _costs(book: Any, what: list[str], args: Options) -> Output:
    rows = book.costs()
    lines = [
        f"{r['judge']}  {r['model']}  {r['endpoint']}: {r['calls']} calls, "
        f"{r['verdicts']} verdicts, {r['tokens_in']} + {r['tokens_out']} tokens, "
        + ("unknown cost" if r["cost"] is None else f"${r['cost']:.4f}")
        for r in rows
    ]
    return Output(rows, "\n".join(lines) or "nothing has been paid")


def _export(book: Any, what: list[str], args: Options) -> Output:
    n = book.export(what[0], requests=args.requests)
    return Output({"lines": n}, f"{n} lines written to {what[0]}")


def _import(book: Any, what: list[str], args: Options) -> Output:
    n, conflicts = book.load(what[0])
    return Output(
        {"lines": n, "conflicts": conflicts},
        f"{n} lines read into {book.path}{_conflicting(conflicts)}",
    )


def _conflicting(n: int) -> str:
    return f"; {n} keys were decided differently: the newer verdict stays" if n else ""


def _merge(book: Any, what: list[str], args: Options) -> Output:
    names = ("ledger", "verdicts", "calls", "conflicts")
    rows = [dict(zip(names, (name, *book.merge(name)), strict=True)) for name in what]
    lines = [
        f"{r['ledger']}: {r['verdicts']} verdicts and {r['calls']} calls are new"
        + _conflicting(r["conflicts"])
        for r in rows
    ]
    return Output(rows, "\n".join(lines))


def _prune(book: Any, what: list[str], args: Options) -> Output:
    n = book.prune(
        days=args.days, judge=args.judge, kinds=[k for k in args.unknown.split(",") if k]
    )
    return Output({"verdicts": n}, f"{n} verdicts forgotten; what they cost stays in the cost book")


ACTIONS: dict[str, Callable[[Any, list[str], Options], Output]] = {
    "explain": _explain,
    "costs": _costs,
    "export": _export,
    "import": _import,
    "merge": _merge,
    "prune": _prune,
}
ARGS = (
    arg("action", choices=ACTIONS),
    arg("what", nargs="*", help="a key, a file, or ledgers: see above"),
    LEDGER,
    arg("--requests", action="store_true", help="export: with the requests, not only the replies"),
    arg("--days", type=float, help="prune: verdicts older than so many days"),
    arg("--judge", help="prune: verdicts of this judge"),
    arg(
        "--unknown", default="", metavar="KINDS", help="prune: unknown for these causes, e.g. parse"
    ),
)


def explained(found: dict[str, Any]) -> str:
    """What the ledger knows of a verdict, as text."""
    v, call = found["verdict"], found["call"]
    state = v["status"] + (f" ({v['failure']})" if v["failure"] else "")
    lines = [
        f"{v['task_id']} / {v['response_id']} / {v['criterion_id']}: {state}, "
        f"P(met) {v['p']}, by {v['judge']}",
        f"key: {found['key']}",
        f"reason: {v['reason']}",
    ]
    if not call:
        return "\n".join([*lines, "no call is stored with it"])
    without = ", ".join(call["meta"].get("without") or ())
    same = ", ".join(f"{s['criterion_id']} {s['status']}" for s in found["same_call"])
    messages = call["request"].get("messages", []) if isinstance(call["request"], dict) else []
    lines += [
        f"call {call['id']}: {call['model']} at {call['endpoint']}, "
        f"{call['tokens_in']} + {call['tokens_out']} tokens, ${call['cost']:.6f}, "
        f"{call['seconds']:.2f} s",
        *([f"asked without (refused by the endpoint): {without}"] if without else []),
        f"same call: {same or 'nothing else'}",
        "",
        "asked:",
        *(f"[{m['role']}]\n{m['content']}" for m in messages),
    ]
    return "\n".join([*lines, "", "raw reply:", call["reply"]])
