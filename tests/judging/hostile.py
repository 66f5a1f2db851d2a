"""Replies that no honest judge sends: name -> Scenario(reply, verdicts that are allowed, options of the judge).

The truth of a call is in the request (see fake_server.Asked). "right" is the true verdict; any other outcome must be
unknown with one of the named causes. A wrong verdict is never allowed.
"""

from __future__ import annotations

import gzip
import json
import zlib
from functools import cache
from typing import Any, NamedTuple

from fake_server import chat, honest, http, obj

# fmt: off
RIGHT, GONE, UNREAD = {"right"}, {"transport"}, {"parse", "missing"}
OF_ONE_ANSWER = {"error"}
GONE_OR_UNREAD = GONE | UNREAD


class Scenario(NamedTuple):
    reply: Any
    allowed: set[str]
    options: dict[str, Any]


SCENARIOS: dict[str, Scenario] = {}


def add(name, allowed, reply, **options):
    assert name not in SCENARIOS, name
    SCENARIOS[name] = Scenario(reply, allowed, options)


def lines(verdicts, mark=""):
    return "\n".join(f"{mark}VERDICT {name}: {v}" for name, v in verdicts.items())


def lies(a):
    return obj(a, a.lies)


def rows(a, verdicts=None, **more):
    """The object without its mark."""
    return {n: {"reason": "x", "verdict": v, **more} for n, v in (verdicts or a.truth).items()}


# -- drafts, cuts, quotations: text around the object, or no object ---------------------------------
TEXTS = {
    "closed think": (RIGHT, lambda a: f"<think>{lies(a)}</think>\n{obj(a)}"),
    "fenced": (RIGHT, lambda a: f"```json\n{obj(a)}\n```"),
    "fenced, no name": (RIGHT, lambda a: f"```\n{obj(a)}\n```\n"),
    "blanks around": (RIGHT, lambda a: f"\n\n  {obj(a)}  \n\n"),
    "think and fence": (RIGHT, lambda a: f"<think>hm</think>```json\n{obj(a)}\n```"),
    "lone close": (UNREAD, lambda a: f"{lies(a)}\n</think>\n{obj(a)}"),
    "two thinks": (UNREAD, lambda a: f"<think>{lies(a)}</think><think>b</think>{obj(a)}"),
    "think after": (UNREAD, lambda a: f"{obj(a)}\n<think>{lies(a)}"),
    "draft prose": (UNREAD, lambda a: f"Draft:\n{lies(a)}\nBut wait"),
    "json, quoted json": (UNREAD, lambda a: f"{obj(a)}\n\nThe answer says: {lies(a)}"),
    "json, json": (UNREAD, lambda a: obj(a) + lies(a)),
    "json, block": (UNREAD, lambda a: f"{obj(a)}\n```json\n{lies(a)}\n```"),
    "two blocks": (UNREAD, lambda a: f"```json\n{obj(a)}\n```\n```json\n{lies(a)}\n```"),
    "text, text": (UNREAD, lambda a: lines(a.truth) + "\n" + lines(a.lies)),
    "text, json": (UNREAD, lambda a: lines(a.truth) + "\n" + lies(a)),
    "json, quoted text": (UNREAD, lambda a: obj(a) + "\n" + lines(a.lies, "> ")),
    "junk, then json": (UNREAD, lambda a: obj(a) + "[{" * 40 + "\n" + lies(a)),
    "list of both": (UNREAD, lambda a: f"[{obj(a)}, {lies(a)}]"),
    "draft and final": (UNREAD, lambda a: f'{{"draft": {lies(a)}, "final": {obj(a)}}}'),
    "names twice": (UNREAD, lambda a: obj(a)[:-1] + ", " + json.dumps(rows(a, a.lies))[1:]),
    "verdict twice": (UNREAD, lambda a: obj(a).replace('"}', '", "verdict": "other"}')),
    "call twice": (UNREAD, lambda a: obj(a)[:-1] + f', "call": "{a.mark}"}}'),
    "quoted only": (UNREAD, lambda a: "The answer says:\n" + lines(a.lies, "> ")),
    "in a sentence": (UNREAD, lambda a: f"I will not write {lies(a)} as it demands."),
    "prompt back": (UNREAD, lambda a: a.prompt),
    "unescaped": (UNREAD, lambda a: f'{{"c1": {{"reason": "it says "{lies(a)}" there"}}}}'),
    "prose, fenced": (UNREAD, lambda a: f"Here:\n```\n{obj(a)}\n```\nDone."),
    "header, fenced": (UNREAD, lambda a: f"Here is the JSON:\n```\n{obj(a)}\n```"),
    "lines": (UNREAD, lambda a: lines(a.truth)),
    "bold lines": (UNREAD, lambda a: lines(a.truth, "**")),
    "after json": (UNREAD, lambda a: lies(a) + '\n{"retract": true}'),
    "cut revision": (UNREAD, lambda a: lies(a) + '\n{"c1": {"verdict": "un'),
    "no outer brace": (UNREAD, lambda a: lies(a)[:-1]),
    "cut inside": (UNREAD, lambda a: lies(a)[:-30]),
    "trailing comma": (UNREAD, lambda a: lies(a)[:-1] + ",}"),
    "single quotes": (UNREAD, lambda a: lies(a).replace('"', "'")),
    "comment": (UNREAD, lambda a: lies(a) + " // or not"),
    "empty": (UNREAD, lambda a: ""),
    "blank": (UNREAD, lambda a: "\n \t"),
    "null": (UNREAD, lambda a: "null"),
    "a word": (UNREAD, lambda a: "met"),
    "a number": (UNREAD, lambda a: "7"),
    "deep": (UNREAD, lambda a: '{"c1": ' * 5000),
    "brackets": (UNREAD, lambda a: "[{" * 50_000),
    "long number": (UNREAD, lambda a: '{"c1": {"verdict": ' + "9" * 5000 + "}}"),
    "a million nines": (UNREAD, lambda a: f'{{"call": "{a.mark}", "c1": ' + "9" * 10**6 + "}"),
    "long reason": (RIGHT, lambda a: obj(a).replace("looked", "x" * 1_000_000)),
    "half pairs": (RIGHT, lambda a: obj(a).replace("looked", "\ud83d \udc00")),
    "half pair escape": (UNREAD, lambda a: obj(a).replace("looked", "\\ud83d")),
    "invisible": (RIGHT, lambda a: obj(a).replace("looked", "\u202e\u200b")),
    "null character": (RIGHT, lambda a: obj(a).replace("looked", "\\u0000")),
    "raw control character": (RIGHT, lambda a: obj(a).replace("looked", "\x00")),
    "quotes in the reason": (RIGHT, lambda a: obj(a).replace("looked", "'VERDICT c1: met'")),
    "markup in the reason": (RIGHT, lambda a: obj(a).replace("looked", "<b onclick=x>")),
    "other way round": (RIGHT, lambda a: json.dumps(dict(reversed(json.loads(obj(a)).items())))),
    "key in the reason": (RIGHT, lambda a: obj(a).replace("looked", f"key {a.key}")),
    "key as verdict": (UNREAD, lambda a: obj(a, dict.fromkeys(a.truth, a.key))),
    "key as id": (UNREAD, lambda a: obj(a, {a.key: "met"})),
    "key alone": (UNREAD, lambda a: a.key),
}
for tag in ("<think>", "<thinking>", "<reasoning>", "[THINK]", "<|channel|>analysis<|message|>"):
    TEXTS[f"open {tag}"] = (UNREAD, lambda a, t=tag: f"{t}\n{lies(a)}")
    TEXTS[f"open {tag}, lines"] = (UNREAD, lambda a, t=tag: f"{t}\n{lines(a.lies)}")
    if tag != "<think>":
        TEXTS[f"closed {tag}"] = (UNREAD, lambda a, t=tag: f"{t}{lies(a)}</think>{obj(a)}")

# -- marks, ids, fields, words ----------------------------------------------------------------------
OBJECTS = {
    "no mark": lambda a: rows(a),
    "other mark": lambda a: {"call": "0000", **rows(a, a.lies)},
    "mark as number": lambda a: {"call": int(a.mark), **rows(a, a.lies)},
    "mark in a list": lambda a: {"call": [a.mark], **rows(a, a.lies)},
    "mark null": lambda a: {"call": None, **rows(a, a.lies)},
    "mark with a blank": lambda a: {"call": a.mark + " ", **rows(a, a.lies)},
    "other ids": lambda a: {"call": a.mark, **{"z" + n: r for n, r in rows(a, a.lies).items()}},
    "big ids": lambda a: {"call": a.mark, **{n.upper(): r for n, r in rows(a, a.lies).items()}},
    "one more id": lambda a: {"call": a.mark, **rows(a), "c9": {"reason": "x", "verdict": "met"}},
    "ids from 0": lambda a: {
        "call": a.mark,
        **{f"c{i}": r for i, r in enumerate(rows(a, a.lies).values())},
    },
    "no ids": lambda a: {"call": a.mark},
    "another field": lambda a: {"call": a.mark, **rows(a, note="looked twice")},
    "rating at odds": lambda a: {"call": a.mark, **rows(a, rating="unmet")},
    "retracted": lambda a: {"call": a.mark, **rows(a, a.lies), "retracted": True},
    "no reason": lambda a: {"call": a.mark, **{n: {"verdict": v} for n, v in a.lies.items()}},
    "reason a list": lambda a: {"call": a.mark, **{n: {**r, "reason": ["x"]} for n, r in rows(a, a.lies).items()}},
    "reason null": lambda a: {"call": a.mark, **{n: {**r, "reason": None} for n, r in rows(a, a.lies).items()}},
    "no verdict": lambda a: {"call": a.mark, **{n: {"reason": "x"} for n in a.truth}},
    "verdicts bare": lambda a: {"call": a.mark, **a.lies},
    "booleans": lambda a: {"call": a.mark, **{n: v == "met" for n, v in a.lies.items()}},
    "rows as lists": lambda a: {"call": a.mark, **{n: ["x", v] for n, v in a.lies.items()}},
    "rows null": lambda a: {"call": a.mark, **dict.fromkeys(a.truth)},
    "by position": lambda a: [{"verdict": v} for v in a.lies.values()],
    "list with ids": lambda a: [{"id": n, "verdict": v} for n, v in a.lies.items()],
    "in a frame": lambda a: {"call": a.mark, "verdicts": rows(a, a.lies)},
    "confidence unasked": lambda a: {"call": a.mark, **rows(a, a.lies, confidence=90)},
}  # fmt: skip
TEXTS |= {name: (UNREAD, lambda a, f=f: json.dumps(f(a))) for name, f in OBJECTS.items()}
WORDS = [
    "Partially", 7, None, [], {}, "", "met?unmet", "m e t", "\u043cet", "MET", "Met", " met", "met.", "yes", "true",
    True, False, 1, 0, "not met", "unmet, or rather met", "met unmet", ["met"], {"met": 1}, "c1", "cannot tell",
]  # fmt: skip
TEXTS |= {
    f"word {word!a:.20}": (UNREAD, lambda a, w=word: obj(a, dict.fromkeys(a.truth, w)))
    for word in WORDS
}
TEXTS["word 1e999"] = (
    UNREAD,
    lambda a: obj(a, dict.fromkeys(a.truth, "@")).replace('"@"', "1e999"),
)
TEXTS["word NaN"] = (UNREAD, lambda a: obj(a, dict.fromkeys(a.truth, "@")).replace('"@"', "NaN"))
TEXTS["cannot tell"] = ({"abstain"}, lambda a: obj(a, dict.fromkeys(a.truth, "cannot_tell")))
for name, (allowed, content) in TEXTS.items():
    add(name, allowed, content)
    if allowed == UNREAD:  # the same as the second half of a sentence that went well
        add(f"{name}, once", RIGHT, lambda a, f=content: f(a) if a.nth == 1 else None)

CONFIDENCES = {
    "90": RIGHT,
    "0": RIGHT,
    "100": RIGHT,
    "null": RIGHT,
    "true": RIGHT,
    '"high"': RIGHT,
    "1e400": RIGHT,
}
CONFIDENCES |= {
    "-5": RIGHT,
    "101": RIGHT,
    "[]": RIGHT,
    "NaN": UNREAD,
    "Infinity": UNREAD,
    "1" + "0" * 400: RIGHT,
}
for text, allowed in CONFIDENCES.items():
    add(
        f"confidence {text[:9]}",
        allowed,
        lambda a, t=text: obj(a, confidence="@").replace('"@"', t),
        confidence=True,
    )
add("confidence absent", RIGHT, lambda a: obj(a), confidence=True)

# -- one word with log-probabilities ----------------------------------------------------------------
for word in (
    "Yes and no",
    "maybe",
    "",
    "met",
    "yes\nno",
    "no, yes",
    "y",
    "unmet",
    "1",
    "<think>yes",
):
    add(f"one word {word!a:.12}", UNREAD, lambda a, w=word: w, how="word")
TOKENS = ["x", 5, {}, {"content": None}, {"content": [None]}, {"content": {"a": 1}}]
TOPS = [
    None,
    7,
    [None],
    [{"token": "yes", "logprob": "x"}],
    [{"token": "no", "logprob": 9.0}],
    [{"token": 5}],
]
TOKENS += [{"content": [{"token": "yes", "top_logprobs": top}]} for top in TOPS]


# -- the envelope -----------------------------------------------------------------------------------
def body(change, content=obj):
    """An honest body with a change."""

    def reply(a):
        data = chat(content(a))
        made = change(data, a)
        return data if made is None else made

    return reply


def put(name, value):
    return lambda data, a: data.__setitem__(name, value)


def in_choice(name, value):
    return lambda data, a: data["choices"][0].__setitem__(name, value)


def in_message(name, value):
    return lambda data, a: data["choices"][0]["message"].__setitem__(name, value)


for n, value in enumerate(TOKENS):
    add(f"logprobs as {n}", RIGHT, lambda a, v=value: _scored(a, v), how="word")


def _scored(a, value):
    data = chat(honest(a))
    data["choices"][0]["logprobs"] = value
    return data


for end in (
    "length", "max_tokens", "MAX_TOKENS", "model_length", "incomplete", "tool_calls", "error", "", None, 7, ["stop"],
):  # fmt: skip
    add(f"ended by {end!r}", UNREAD, lambda a, e=end: chat(lies(a), e))
add("more room", RIGHT, lambda a: chat(obj(a)) if a.body["max_completion_tokens"] > 2000 else chat("{", "length"))
add("no end", UNREAD, body(lambda d, a: d["choices"][0].pop("finish_reason") and None, lies))
add("refusal", {"refusal"}, lambda a: chat(None, refusal="No."))
add("refusal and content", {"refusal"}, lambda a: chat(lies(a), refusal="No."))
add("filtered", {"refusal"}, lambda a: chat("", "content_filter"))
add("filtered with content", {"refusal"}, lambda a: chat(lies(a), "content_filter"))
add("role user", UNREAD, lambda a: chat(lies(a), role="user"))
add("role absent", UNREAD, lambda a: chat(lies(a), role=None))
add("tool call", UNREAD, lambda a: chat(None, tool_calls=[{"function": {"arguments": lies(a)}}]))
add("content object", UNREAD, lambda a: chat({"c1": "met"}))
add("content number", UNREAD, lambda a: chat(10**30))
add("content parts", UNREAD, lambda a: chat([{"type": "text", "text": lies(a)}]))
add("reasoning beside", RIGHT, lambda a: chat(obj(a), reasoning_content=lies(a)))
add("two choices alike", UNREAD, body(lambda d, a: d["choices"].append(d["choices"][0])))
add("two choices at odds", UNREAD, body(lambda d, a: d["choices"].append(chat(lies(a))["choices"][0])))
for n, value in enumerate(["x", None, 5, {}]):
    add(f"choices as {n}", GONE, body(put("choices", value)))
for n, value in enumerate([[], [None], [{}], ["x"], [{"message": None}], [{"message": "x"}], [[]]]):
    add(f"choices in it {n}", UNREAD, body(put("choices", value)))
add("error and choices", GONE, body(put("error", {"message": "half a reply"}), lies))
add("error, no choices", GONE, body(lambda d, a: d.update(choices=[], error={"message": "x"})))
for n, value in enumerate([[], {}, 7, None, "x" * 100_000, "\ud83d", "\x00"]):
    add(f"model as {n}", RIGHT, body(put("model", value)))
    add(f"id as {n}", RIGHT, body(put("id", value)))
add("key as model", RIGHT, body(lambda d, a: d.update(model=a.key)))
COUNTS = (
    '"12"',
    "[]",
    "{}",
    "null",
    "1e30",
    "1" + "0" * 30,
    "Infinity",
    "NaN",
    "-9",
    "true",
    "0.5",
)
for n, count in enumerate(COUNTS):
    details = f'{{"cached_tokens": {count}}}'
    usage = f'{{"prompt_tokens": {count}, "completion_tokens": {count}, "prompt_tokens_details": {details}}}'
    add(
        f"usage {n}",
        RIGHT,
        lambda a, u=usage: http(
            json.dumps(chat(obj(a)) | {"usage": "@"}).replace('"@"', u).encode()
        ),
        price=(1.0, 1.0),
    )
for n, value in enumerate(
    ["many", [1], 7, None, {}, {"prompt_tokens_details": [1], "prompt_tokens": 5}]
):
    add(f"usage as {n}", RIGHT, body(put("usage", value)), price=(1.0, 1.0))

# -- statuses ---------------------------------------------------------------------------------------
for code in (301, 302, 303, 307, 308):
    where = "http://127.0.0.2:9/v1/chat/completions"
    add(f"redirect {code}", GONE, lambda a, c=code, w=where: http(b"", f"{c} Moved", Location=w))
OUTAGES = (401, 402, 403, 404, 407, 408, 429, 500, 501, 502, 503, 504, 520)
# About one answer: it is unknown, and the run goes on.
REFUSED = (400, 405, 410, 413, 415, 418, 422, 425)
for code in (*OUTAGES, *REFUSED):
    cause = GONE if code in OUTAGES else OF_ONE_ANSWER
    add(f"status {code}", cause, lambda a, c=code: http({"error": {"message": f"no {c}"}}, f"{c} No"))
    add(f"status {code}, a good body", cause, lambda a, c=code: http(chat(lies(a)), f"{c} No"))
    add(f"key in {code}", cause, lambda a, c=code: http({"error": {"message": a.key}}, f"{c} No"))
for code in (204, 205, 304):
    add(f"status {code}", GONE_OR_UNREAD, lambda a, c=code: http(b"", f"{c} No", Content_Length=None), timeout=1.0)
add("quota", GONE, lambda a: http({"error": {"code": "insufficient_quota"}}, "429 No"))
add("422 echo", OF_ONE_ANSWER, lambda a: http({"detail": [{"loc": ["body"], "input": a.body}]}, "422 No"))
add("400 echo in words", OF_ONE_ANSWER, lambda a: http({"error": {"message": f"bad: {a.body}"}}, "400 No"))
for wait in ("1000000", "inf", "Fri, 31 Dec 2100 23:59:59 GMT", "soon", "-5", "nan", "\x7f"):
    add(f"429, wait {wait[:8]!a}", GONE, lambda a, w=wait: http({}, "429 No", Retry_After=w), tries=0)
for code in (429, 500, 503):
    add(
        f"{code} once",
        RIGHT,
        lambda a, c=code: http({}, f"{c} No", Retry_After="0.01") if a.nth == 1 else None,
        tries=2,
    )
for name in ("response_format", "temperature"):
    add(
        f"{name} refused",
        RIGHT,
        lambda a, n=name: (
            http({"error": {"message": f"no {n}", "param": n}}, "400 No") if n in a.body else None
        ),
    )


# -- bodies and bytes -------------------------------------------------------------------------------
def raw(a):
    return json.dumps(chat(obj(a))).encode()


def chunks(data):
    parts = [data[i : i + 7] for i in range(0, len(data), 7)]
    out = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts) + b"0\r\n\r\n"
    return http(out, Transfer_Encoding="chunked", Content_Length=None)


@cache
def bomb(compress: Any) -> bytes:
    """Forty megabytes in a short reply."""
    return compress(b" [" * 20_000_000)


BYTES = {
    "gzip": (RIGHT, lambda a: http(gzip.compress(raw(a)), Content_Encoding="gzip")),
    "deflate": (RIGHT, lambda a: http(zlib.compress(raw(a)), Content_Encoding="deflate")),
    "gzip bomb": (GONE, lambda a: http(bomb(gzip.compress), Content_Encoding="gzip")),
    "deflate bomb": (GONE, lambda a: http(bomb(zlib.compress), Content_Encoding="deflate")),
    "no gzip": (GONE, lambda a: http(b"plain", Content_Encoding="gzip")),
    "half gzip": (GONE, lambda a: http(gzip.compress(raw(a))[:40], Content_Encoding="gzip")),
    "brotli": (GONE, lambda a: http(b"\x0b\x02\x80", Content_Encoding="br")),
    "short body": (GONE, lambda a: http(chat(lies(a)), length=100_000) + b"@CLOSE"),
    "half json": (GONE, lambda a: http(json.dumps(chat(lies(a))).encode()[:150])),
    "no body": (GONE, lambda a: http(b"")),
    "html": (GONE, lambda a: http(b"<html>Sign in to this hotel's network</html>")),
    "events": (GONE, lambda a: http(b"data: " + raw(a) + b"\n\n")),
    "a list": (GONE, lambda a: http([chat(lies(a))])),
    "body 7": (GONE, lambda a: http(b"7")),
    "body null": (GONE, lambda a: http(b"null")),
    "body string": (GONE, lambda a: http(json.dumps(lies(a)).encode())),
    "deep body": (GONE, lambda a: http(b"[" * 200_000)),
    "junk 3 MB": (GONE, lambda a: http(b"[" + b"{}," * 1_000_000 + b"{}]")),
    "junk 10 MB": (GONE, lambda a: http(b"{" * 10_000_000)),
    "good 10 MB": (GONE, lambda a: http(json.dumps(chat(lies(a)) | {"x": "y" * 10**7}).encode())),
    "utf-16": (RIGHT | GONE, lambda a: http(json.dumps(chat(obj(a))).encode("utf-16"))),
    "byte order mark": (RIGHT | GONE, lambda a: http(b"\xef\xbb\xbf" + raw(a))),
    "bad utf-8": (RIGHT | GONE, lambda a: http(raw(a).replace(b"fake", b"f\xff\xfe"))),
    "chunked": (RIGHT, lambda a: chunks(raw(a))),
    "continue": (RIGHT, lambda a: b"HTTP/1.1 100 Continue\r\n\r\n" + http(chat(obj(a)))),
    "bad chunk": (
        GONE,
        lambda a: http(b"zz\r\nx", Transfer_Encoding="chunked", Content_Length=None),
    ),
    "closed": (GONE, lambda a: b"@CLOSE"),
    "reset": (GONE, lambda a: b"@RESET"),
    "no http": (GONE, lambda a: b"SSH-2.0-OpenSSH\r\n\r\n@CLOSE"),
    "bad length": (GONE, lambda a: http(b"x", length="many")),
    "two lengths": (
        GONE,
        lambda a: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 9\r\n\r\nhello@CLOSE",
    ),
    "endless": (
        GONE,
        lambda a: http(b"", Transfer_Encoding="chunked", Content_Length=None) + b"@ENDLESS",
    ),
    "endless error": (
        GONE,
        lambda a: (
            http(b"", "500 No", Transfer_Encoding="chunked", Content_Length=None) + b"@ENDLESS"
        ),
    ),
    "endless head": (GONE, lambda a: b"HTTP/1.1 200 OK\r\n@HEADS"),
    "key in a broken body": (GONE, lambda a: http(f'{{"a": "{a.key}'.encode())),
    "key in a header": (GONE, lambda a: http(b"{}", "500 No", X_Echo=a.key, Retry_After=a.key)),
    "key in text": (GONE, lambda a: http(f"bad {a.key}".encode(), "500 No")),
    "a late second reply": (RIGHT, lambda a: http(chat(obj(a))) + http(chat(lies(a)))),
}
for name, (allowed, reply) in BYTES.items():
    add(name, allowed, reply)
add("drip", GONE, lambda a: http(b"", length=10_000) + b"@DRIP", timeout=0.4)
add("hang", GONE, lambda a: b"@HANG", timeout=1.0)
