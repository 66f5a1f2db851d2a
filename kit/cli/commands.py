"""The commands, in the order of the steps: functions of the front door with files in place of objects."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

import kit

from ..records import count_of, group
from ..system import machine, paths, profiles, settings
from .output import (
    Output,
    Texts,
    Values,
    command_line,
    inspect_command,
    screen_text,
    text_table,
)


def check() -> Output:
    """Versions, device, dtype and why; what will not work and the remedy."""
    rows = [
        {"name": name, "state": state, "remedy": remedy}
        for name, state, remedy in (*machine.check_rows(), *_judges())
    ]
    table = [{**r, "remedy": r["remedy"] and f"to do: {r['remedy']}"} for r in rows]
    return Output(lines=[table], data=rows, next="kit demo")


def demo(
    *only: str, profile: str = "cpu", out: Path | None = None, again: bool = False
) -> Output:
    """Run the notebooks headless, in order, and write one report.

    Finished notebooks are not run again.

    Args:
        only: numbers of notebooks (default: all)
        profile: test, cpu, t4, gpu or cluster
        out: folder of runs (default: runs/demo)
        again: run from the start what is finished
    """
    # A folder of its own: the report then shows these runs only.
    base = (out or paths.runs() / "demo").resolve()
    books = list(map(kit.runs.find_notebook, only)) or sorted(
        paths.notebooks().glob("[0-9]*")
    )
    for number, book in enumerate(books, 1):
        _echo(f"[{number} of {len(books)}] {book.stem}")
        # A notebook that compares runs reads those of this demo.
        names = kit.runs.parameters.read(book).keys() & {"runs_dir"}
        ended = run(
            str(book),
            profile=profile,
            set=dict.fromkeys(names, str(base)),
            out=base,
            again=again,
        )
        if ended.code:
            return ended
    return report(base)


def fetch(*names: str) -> Output:
    """Fetch the pinned downloads once: recorded judges and SmolLM2-135M (110 MB).

    Args:
        names: recorded, small, judge (a 1.5B judge for laptops, 1.1 GB; only when named)
    """
    places = {}
    for name in names or ("recorded", "small"):
        # a hundred megabytes take a while; an empty terminal looks like a hanging one
        _echo(f"{name} ...")
        places[name] = kit.data.fetch(name)
    return Output(
        lines=[f"ready: {', '.join(places)}"], data=places, next="kit demo"
    )


def inspect(
    file: str,
    /,
    *,
    map: Texts = None,
    format: str = "auto",
    on_error: Literal["raise", "skip"] = "raise",
    lint: bool = False,
    out: Path | None = None,
    draft: Path | None = None,
    judge: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    ledger: Path | None = None,
) -> Output:
    """Read a file of rubrics, answers or labels: what it contains, and what to fix first.

    Args:
        file: JSONL, JSON, CSV, Parquet or hf://...
        map: fields that are called otherwise, yours=ours, for example --map desc=text,qid=task_id; note: kept aside
        format: the format's name where detection is wrong
        on_error: stop at rows that cannot be read, or leave them out (skip)
        lint: list all findings, and rows that cannot be read; exit code 1 if one is an error
        out: write the rubrics in the kit's own form, to read and edit
        draft: propose criteria with --judge from reference or paired answers, and write them to this file
        judge: a judge that answers eight questions about each criterion, or drafts
        model: the judge's model, by its name at the server
        base_url: address of the judge's server
        ledger: stored verdicts (default: in the kit's cache)
    """
    _spare_inputs(draft or out, file)
    # How the file is read; what is written beside it needs none of that.
    options = {
        "fields": map,
        "format": format.removeprefix("auto"),
        "on_error": on_error.removeprefix("raise"),
    }
    if lint:
        on_error = "skip"
    tasks = kit.load(file, format=format, fields=map, on_error=on_error)
    asking = _asking(judge, model, base_url, ledger=ledger)
    if out:
        _spare_other_files(
            out, file, lambda old: _records(kit.load(old)) == _records(tasks)
        )
    if draft:
        _spare_other_files(draft, "this draft", lambda old: False)
        # A draft begins with answers and has no criteria to lint yet.
        proposal = kit.draft(tasks, **asking)
        kit.save(draft, proposal)
        return Output(data=proposal, next=f"read and edit {draft}")
    findings = kit.lint(tasks, **asking)
    if out:
        kit.save(out, tasks)
    errors = findings.severities["error"]
    following = _after_inspect(tasks, file, out, options) or command_line(
        "judge",
        out or file,
        "--estimate",
        judge=judge or "endpoint",
        model=model,
        base_url=base_url,
        ledger=ledger,
    )
    has_failed = lint and errors > 0
    return Output(
        lines=[*_inspection(tasks, findings, lint)],
        data={
            "tasks": len(tasks.tasks),
            "findings": findings.findings,
            "errors": errors,
        },
        next="mend the errors above" if has_failed else following,
        code=int(has_failed),
    )


def _inspection(tasks: Any, findings: Any, lint: bool) -> Iterator[Any]:
    """What a file contains, and where lint is asked for, all that is to be fixed."""
    yield repr(tasks)
    # A file of answers or labels alone has no rubrics to sum up.
    if tasks.tasks:
        yield from (kit.summarize(tasks).table(), str(findings))
    by_message = group(
        ((f.severity, f.message), f)
        for f in findings.findings
        # Rows that were left out are never left unsaid.
        if lint or f.severity == "error"
    )
    for equal in by_message.values():
        yield _line_of(*equal)


def _after_inspect(
    tasks: Any, file: str, out: Path | None, options: dict[str, Any]
) -> str:
    """What to do with an inspected file; nothing where it can be judged. options : with which it was read."""
    if not out and any(options.values()):
        # Only `kit inspect` knows the file's own names of its fields.
        return inspect_command(file, **options)
    if not tasks.tasks and not tasks.responses:
        # The file holds either people's labels or what a judge wrote.
        is_people = any(v.judge.startswith("human") for v in tasks.verdicts)
        sides = [out or file, "VERDICTS"] if is_people else ["LABELS", out or file]
        return (
            f"compare people with a judge: {command_line('agree', 'TASKS', *sides)}"
        )
    if not tasks.tasks:
        return f"name it behind the file of its tasks: {command_line('judge', 'TASKS', out or file)}"
    if not any(t.criteria or t.truth for t in tasks):
        return "add criteria to its tasks, or name it as `rows` of a training: kit train CONFIG"
    if not tasks.responses:
        return f"write answers to a file: {command_line('judge', out or file, 'ANSWERS')}"
    return ""


def judge(
    tasks: str,
    answers: str | None = None,
    /,
    *,
    judge: str = "code",
    model: str | None = None,
    base_url: str | None = None,
    prompt: Path | None = None,
    set: Values = None,
    estimate: bool = False,
    out: Path = Path("verdicts.jsonl"),
    ledger: Path | None = None,
    budget_usd: float | None = None,
    budget_calls: int | None = None,
    retry: bool = False,
    reward: str = "rubric",
    audit: bool = False,
) -> Output:
    """Judge answers against the criteria of their tasks, and write the verdicts as JSONL.

    What the ledger holds is not paid again: the same command goes on where it stopped.

    Args:
        tasks: files; answers may stand in the tasks' file
        answers: files; answers may stand in the tasks' file
        judge: code, endpoint:MODEL, local, small, server:FILE, replay:NAME, or a mapping as JSON
        model: of an OpenAI-compatible server; the key comes from the environment
        base_url: of an OpenAI-compatible server; the key comes from the environment
        prompt: a file with the judge's prompt
        set: another option of the judge, for example --set how=one --set timeout=60
        estimate: calls and cost, without judging
        out: file of verdicts
        ledger: stored verdicts (default: in the kit's cache)
        budget_usd: stop before more is spent (exit code 4)
        budget_calls: stop before more is spent (exit code 4)
        retry: judge again what is unknown
        reward: how verdicts become scores: rubric, a preset or a YAML file
        audit: judge the answers again under each attack and bias (about twenty times)
    """
    _spare_inputs(out, tasks, answers, prompt)
    both = _joined(tasks, answers)
    asking = _asking(judge, model, base_url, prompt, set, ledger)
    if estimate:
        # An audit judges the plain answers as well; these verdicts are there already.
        measure = kit.tuning.estimate_audit if audit else kit.estimate
        usage = measure(tasks=both, **asking)
        return Output(
            lines=[f"{kit.judge_of(asking['judge']).name}: {usage}"], data=usage
        )
    _spare_other_files(out, "verdicts of a judge", _is_judged)
    budget = kit.Budget(calls=budget_calls, usd=budget_usd)
    # Written before the scores: a wrong --reward must not cost the verdicts.
    verdicts = _write_verdicts(out, both, **asking, budget=budget, retry=retry)
    score = kit.grade(both, verdicts, reward=reward).estimate
    causes = verdicts.causes()
    lines = [repr(verdicts), f"mean score {score}", causes]
    if audit:
        result = kit.audit(tasks=both, **asking, budget=budget)
        lines += [result.line, result.table()]
    following = command_line(
        "view",
        out,
        tasks=tasks,
        answers=answers,
        reward="" if reward == "rubric" else reward,
    )
    # A run without a single known verdict is no result, however many answers it read.
    is_lost = sum(causes["verdicts"]) == len(verdicts)
    return Output(
        lines=lines,
        data={"verdicts": len(verdicts), "out": out, "score": score},
        next="read the causes above" if is_lost else following,
        code=5 if is_lost else 0,
    )


def _write_verdicts(out: Path, both: Any, **asking: Any) -> Any:
    """Judge, and write the verdicts, also those of a run that stops."""
    try:
        verdicts = kit.judge(both, **asking)
    except kit.KitError as e:
        stopped = list(getattr(e, "verdicts", ()))
        if any(v.is_known for v in stopped):
            kit.save(out, kit.data.TaskSet(verdicts=stopped))
            _echo(f"what was judged until then: {out}")
        raise
    kit.save(out, kit.data.TaskSet(verdicts=verdicts))
    return verdicts


def answer(
    tasks: str,
    /,
    *,
    model: str,
    base_url: str | None = None,
    n: int = 1,
    temperature: float | None = None,
    max_tokens: int = 1000,
    system: Path | None = None,
    name: str | None = None,
    seed: int = 0,
    set: Values = None,
    estimate: bool = False,
    out: Path = Path("answers.jsonl"),
    ledger: Path | None = None,
    budget_usd: float | None = None,
    budget_calls: int | None = None,
) -> Output:
    """Get answers to the prompts of a file from a model, and write them as JSONL.

    What the ledger holds is not paid again: the same command goes on where it stopped.

    Args:
        tasks: a file with prompts
        model: endpoint:MODEL, server:FILE.gguf, local, small, a folder or name of weights, a run, or a mapping as JSON
        base_url: of an OpenAI-compatible server; the key comes from the environment
        n: answers to each prompt
        temperature: default 0 for one answer, 1 for several
        max_tokens: of an answer
        system: a file with the system text, in place of that of the prompts
        name: what the answers say as their source (default: the model's name)
        seed: of weights on this machine
        set: another option of the endpoint, for example --set timeout=60
        estimate: calls and cost, without asking
        out: file of answers
        ledger: stored answers (default: in the kit's cache)
        budget_usd: stop before more is spent (exit code 4)
        budget_calls: stop before more is spent (exit code 4)
    """
    _spare_inputs(out, tasks, system)
    source = _asking(model, None, base_url, None, set)["judge"]
    writer = name or kit.evaluation.source_name(source)
    _spare_other_files(
        out,
        f"answers of {writer!r}",
        lambda old: (
            {getattr(r, "source", "") for r in _records(kit.load(old))} == {writer}
        ),
    )
    options: dict[str, Any] = {
        "n": n,
        "temperature": temperature,
        "max_tokens": max_tokens,
        "system": system and system.read_text("utf-8-sig").strip(),
        "seed": seed,
        "ledger": ledger,
    }
    if estimate:
        return Output(
            data=kit.evaluation.estimate_answers(tasks, source, **options)
        )
    answers = kit.answer(
        tasks,
        source,
        **options,
        name=name,
        budget=kit.Budget(calls=budget_calls, usd=budget_usd),
    )
    kit.save(out, kit.data.TaskSet(responses=answers.responses))
    cut = sum(response.truncated for response in answers.responses)
    return Output(
        lines=[
            f"{count_of(len(answers.responses), 'answer')} to {count_of(len(answers), 'prompt')}: {out}",
            _cut_note(cut, max_tokens),
        ],
        data={
            "answers": len(answers.responses),
            "prompts": len(answers),
            "truncated": cut,
            "out": out,
        },
        next=f"{command_line('judge', tasks, out)} --judge endpoint:MODEL --estimate",
    )


def _cut_note(cut: int, max_tokens: int) -> str:
    """How many answers were cut; nothing where none was."""
    note = f"{count_of(cut, 'answer')} cut at {max_tokens} tokens; --max-tokens raises the limit"
    return note if cut else ""


def compare(
    tasks: str,
    /,
    *answers: str,
    judge: str = "code",
    base_url: str | None = None,
    reward: str = "rubric",
    on_missing: Literal["raise", "skip"] = "raise",
    ledger: Path | None = None,
    budget_usd: float | None = None,
    budget_calls: int | None = None,
) -> Output:
    """Compare models by the reward of their answers to the same prompts.

    An answer passes where it meets every criterion and has no fault.

    Args:
        tasks: a file with prompts
        answers: a file for each model; the first is compared with the others. One or none: models are its sources
        judge: code, endpoint:MODEL, local, small, server:FILE, replay:NAME, or a mapping as JSON
        base_url: of the judge's server; the key comes from the environment
        reward: how verdicts become scores: rubric, a preset or a YAML file
        on_missing: stop where a model did not answer a prompt, or leave such prompts out (skip)
        ledger: stored verdicts (default: in the kit's cache)
        budget_usd: stop before more is spent (exit code 4)
        budget_calls: stop before more is spent (exit code 4)
    """
    comparison = kit.compare(
        _joined(tasks, answers[0] if len(answers) == 1 else None),
        {Path(file).stem: file for file in answers} if len(answers) > 1 else None,
        **_asking(judge, None, base_url, ledger=ledger),
        reward=reward,
        on_missing=on_missing,
        budget=kit.Budget(calls=budget_calls, usd=budget_usd),
    )
    table, kinds = comparison.table(), comparison.by_kind()
    return Output(
        lines=[comparison.sentence, table, kinds if len(kinds) > 1 else ""],
        data={"sentence": comparison.sentence, "models": table, "kinds": kinds},
    )


def explain(
    tasks: str,
    answers: str | None = None,
    /,
    *,
    id: str = "",
    judge: str = "code",
    base_url: str | None = None,
    reward: str = "rubric",
    ledger: Path | None = None,
) -> Output:
    """Show one answer whole: the judge's messages, its reply, each verdict, and the reward line by line.

    Args:
        tasks: a file with prompts and criteria
        answers: a file of answers, where the tasks' file has none
        id: TASK/ANSWER (default: the first answer)
        judge: code, endpoint:MODEL, local, small, server:FILE, replay:NAME, or a mapping as JSON
        base_url: of an OpenAI-compatible server; the key comes from the environment
        reward: how verdicts become scores: rubric, a preset or a YAML file
        ledger: stored verdicts (default: in the kit's cache)
    """
    both = _joined(tasks, answers)
    by_ids = {"/".join(r.ids): r for r in both.responses}
    id = id or next(iter(by_ids), "TASK/ANSWER")
    settings.check_names([id], by_ids, where="option --id")
    answer = by_ids[id]
    explanation = kit.explain(
        both.by_id[answer.task_id],
        answer,
        **_asking(judge, None, base_url, ledger=ledger),
        reward=reward,
    )
    return Output(
        lines=[screen_text(explanation, folds=False)],
        data={"grade": explanation.grade, "sections": explanation.sections},
    )


def tune(
    tasks: str,
    answers: str | None = None,
    labels: str | None = None,
    /,
    *,
    judge: str = "endpoint",
    model: str | None = None,
    base_url: str | None = None,
    prompt: Path | None = None,
    set: Values = None,
    try_: Texts = None,
    search: bool = False,
    test: bool = False,
    keep: str | None = None,
    out: Path = Path("prompt.txt"),
    ledger: Path | None = None,
    budget_usd: float | None = None,
) -> Output:
    """Try prompts of a judge on labelled answers, search for better ones, read a sealed test once.

    Args:
        tasks: files; one file may hold all three
        answers: files; one file may hold all three
        labels: files; one file may hold all three
        judge: as in `kit judge`
        model: as in `kit judge`
        base_url: as in `kit judge`
        prompt: as in `kit judge`
        set: as in `kit judge`
        try_: a prompt to compare, --try strict=strict.txt
        search: let a model rewrite the prompt (GEPA) on the training part
        test: read the sealed test for --keep, once
        keep: the trial whose prompt is written (default: the best one)
        out: file of that prompt; a file that holds something else is not replaced
        ledger: stored verdicts (default: in the kit's cache)
        budget_usd: stop before more is spent (exit code 4)
    """
    trials = try_ or {}
    _spare_inputs(out, tasks, answers, labels, prompt, *trials.values())
    bench = kit.workbench(
        list(filter(None, (tasks, answers, labels))),
        **_asking(judge, model, base_url, prompt, set, ledger),
        budget=kit.Budget(usd=budget_usd),
    )
    _spare_other_files(out, "a prompt that was tried", bench.has_written)
    # Prompts are tried before the search, so that its winner is compared with them too.
    for name, path in trials.items():
        bench.try_(name, Path(path).read_text("utf-8-sig"))
    if search:
        bench.search()
    table, keep = bench.table(), keep or bench.choose()
    place = bench.export(out, keep)
    lines = [
        repr(bench),
        table,
        f"prompt of the trial {keep!r}: {place} (trials that judge less than 80 % of dev are not chosen)",
    ]
    data: Any = table
    if test:
        reading = bench.test(keep)
        lines.append(f"sealed test: {reading}")
        data = {"trials": table, "sealed_test": reading}
    return Output(
        lines=lines,
        data=data,
        next=command_line(
            "judge",
            tasks,
            answers,
            judge=judge,
            model=model,
            base_url=base_url,
            prompt=out,
            set=set,
            ledger=ledger,
            budget_usd=budget_usd,
            # What the judge said with its old prompt stays.
            out=_free_name("verdicts.jsonl"),
        ),
    )


def agree(
    tasks: str, labels: str, verdicts: str, /, *, answers: str | None = None
) -> Output:
    """How far a judge agrees with people: overall, per criterion, with intervals.

    A level, or points, count as met from one half on.

    Args:
        tasks: files; verdicts are what `kit judge` wrote
        verdicts: files; verdicts are what `kit judge` wrote
        labels: a file, or several with commas
        answers: file of answers, where the labels do not hold them
    """
    agreement = kit.agreement_report(
        _joined(tasks, answers), _labels(labels), kit.load(verdicts).verdicts
    )
    return Output(
        lines=[agreement.describe(text_table)],
        data=agreement,
        next=command_line("rate", tasks, labels, verdicts, answers=answers),
    )


def rate(
    tasks: str,
    labels: str,
    verdicts: str,
    /,
    *,
    answers: str | None = None,
    other: str | None = None,
    design: Literal["random", "shifted"] = "random",
) -> Output:
    """The rate that people would see, from a judge's verdicts and a few labels.

    It is the share of verdicts that give credit (met, or unmet where the weight is negative), without those by code.

    Args:
        tasks: files; verdicts are what `kit judge` wrote
        verdicts: files; verdicts are what `kit judge` wrote
        labels: a file, or several with commas
        answers: file of answers, where the tasks' file has none; the next step draws more rows of them
        other: verdicts on another policy's answers, for the corrected difference
        design: random, if the labelled rows are a random sample; shifted, if they come from elsewhere
    """
    both = _joined(tasks, answers)
    rates = kit.rate(
        both,
        _labels(labels),
        kit.load(verdicts).verdicts,
        design=design,
        other=kit.load(other).verdicts if other else None,
    )
    more = command_line(
        "label",
        tasks,
        # A name to fill in, where neither file has answers.
        answers or (None if both.responses else "ANSWERS"),
        verdicts=verdicts,
        # A random sample goes on where it is; labels from elsewhere are no part of one.
        labels=labels if design == "random" else None,
        out=_free_name("labels.csv"),
    )
    # Where every row has its label, there is nothing to draw.
    return Output(data=rates, next=more if rates["labels alone"].missing else "")


def label(
    tasks: str,
    answers: str | None = None,
    /,
    *,
    n: int = 40,
    verdicts: str | None = None,
    labels: str | None = None,
    whole: bool = False,
    seed: int = 0,
    out: Path = Path("labels.csv"),
) -> Output:
    """Draw what people should label next, as a CSV file with an empty column.

    Args:
        tasks: files
        answers: files
        n: rows
        verdicts: what `kit judge` wrote; then only judged rows are drawn
        labels: people's labels of an earlier draw, which are not drawn again; a file, or several with commas
        whole: draw whole prompts with all their answers
        seed: another seed draws other rows
        out: file of rows to label
    """
    frame = kit.label(
        _joined(tasks, answers),
        n=n,
        verdicts=kit.load(verdicts).verdicts if verdicts else None,
        labels=_labels(labels) if labels else (),
        whole=whole,
        seed=seed,
    )
    kit.people.save_labels(frame, out)
    return Output(
        lines=[f"{count_of(len(frame), 'row')} to label: {out}"],
        data=frame,
        next=f"fill in {out}, then "
        + command_line(
            "agree",
            tasks,
            ",".join(filter(None, (labels, str(out)))),
            verdicts or "verdicts.jsonl",
            answers=answers,
        ),
    )


def view(
    verdicts: str,
    /,
    *,
    tasks: str | None = None,
    answers: str | None = None,
    labels: str | None = None,
    reward: str = "rubric",
    out: Path = Path("verdicts.html"),
) -> Output:
    """Write one HTML page with answers, verdicts and reasons, to filter and to search.

    Args:
        verdicts: what `kit judge` wrote, or the folder or name of a training (its held-out answers, before and after)
        tasks: files that were judged
        answers: files that were judged
        labels: people's labels, shown beside the verdicts; a file, or several with commas
        reward: how verdicts become scores, as in `kit judge`
        out: file of the page
    """
    _spare_inputs(out, verdicts, tasks, answers, labels)
    _spare_other_files(out, "a page", _is_page)
    if Path(verdicts).is_file() or verdicts.endswith(".jsonl"):
        # a file that is missing, or without tasks, says so itself
        both = _joined(tasks or verdicts, answers)
        # Grades hold the verdicts, and the score of each answer.
        rows = kit.grade(both, kit.load(verdicts).verdicts, reward=reward)
    else:
        both, rows = kit.training.Result.read(kit.runs.find_folder(verdicts)).judged
    path = kit.view(
        rows,
        tasks=both,
        labels=_labels(labels) if labels else None,
        out=out,
    )
    return Output(
        lines=[f"page: {path}"],
        data={"page": path},
        next=path,
    )


def calibrate(
    file: Path,
    confidence: str,
    correct: str,
    /,
    *,
    cluster: str | None = None,
    missing: Literal["raise", "count"] = "raise",
    bins: int | Literal["auto"] = "auto",
    closed: Literal["right", "left"] = "right",
    equal_mass: bool = False,
    html: Path = Path("calibration.html"),
) -> Output:
    """Calibration error of confidences in a table: interval, null value, diagram.

    Args:
        file: CSV, TSV, JSONL, JSON or Parquet, also .gz, a row per answer
        confidence: column with numbers in [0, 1]
        correct: column with 0 and 1
        cluster: column that names the prompt of a row; intervals then rest on prompts
        missing: stop at rows without a confidence, or count them
        bins: number of bins; auto: as many as the rows allow
        closed: the side of a bin that belongs to it
        equal_mass: bins with about equally many rows, in place of equal widths
        html: page of the reliability diagram
    """
    _spare_inputs(html, file)
    _spare_other_files(html, "a page", _is_page)
    curve = kit.reliability(
        kit.data.read_table(file, numbers=(confidence, correct)),
        confidence,
        correct,
        cluster=cluster,
        missing=missing,
        bins=bins,
        closed=closed,
        equal_mass=equal_mass,
    )
    kit.plots.page(
        f"Calibration of {file.name}", [str(curve), curve.plot()], path=html
    )
    return Output(data=curve, next=html)


def train(
    config: str = "",
    /,
    *,
    profile: str | None = None,
    set: Values = None,
    resume: bool = False,
    forecast: bool = False,
    names: bool = False,
) -> Output:
    """Train a policy from a config: SFT, DPO, GRPO or a chain, evaluated before and after.

    With the profile cluster, one process prints the commands that start several.

    Args:
        config: a YAML file, or instructions, rlvr, refiner, biorlhf, ladder_chain, ladder_confidence
        profile: test, cpu, t4, gpu or cluster
        set: replaces a value of the config, for example --set steps=10
        resume: go on from the last checkpoint
        forecast: what can be learned and how long it takes, without training
        names: list all settings with meaning and default, and the names of other systems that are read
    """
    if names or not config:
        table, others = kit.training.reference(), kit.training.renames()["renames"]
        return Output(
            lines=[
                table,
                "\nnames of other systems, and ours:",
                *(f"  {old}: {new}" for old, new in others.items()),
            ],
            data={"settings": table, "renames": others},
            # Without a config there is nothing to train, which is no success.
            code=0 if names else 2,
        )
    # one name for the machine's sizes, in all commands
    changes = {"profile": profile, **(set or {})}
    if forecast:
        return Output(data=kit.training.forecast(config, **changes))
    # torchrun and accelerate set WORLD_SIZE, also for one process
    if (
        profiles.resolve(profile).name == "cluster"
        and "WORLD_SIZE" not in os.environ
    ):
        lines = _launch_lines(
            command_line(
                "train",
                config,
                "--resume" if resume else "",
                profile="cluster",
                set=set,
            )
        )
        return Output(lines=lines, data=lines)
    result = kit.training.train(config, resume=resume or None, **changes)
    return Output(
        lines=[result.gain.sentence, f"run: {result.folder}"],
        data={"folder": result.folder, "gain": result.gain},
        next=result.folder / "training.html",
    )


def _launch_lines(command: str) -> list[str]:
    """The lines that start a training in several processes."""
    launch = (kit.training.CONFIGS / "launch.txt").read_text("utf-8")
    zero3 = shlex.quote(str(kit.training.CONFIGS / "zero3.json"))
    return str(launch.format(command=command, zero3=zero3)).splitlines()


def export(
    run: Path,
    /,
    *,
    to: Literal["merged", "adapter"] = "merged",
    out: Path | None = None,
    hub: str | None = None,
) -> Output:
    """Write the model of a finished training with its card, or upload both to the hub.

    Args:
        run: the folder or name of a training, or of one stage of a chain
        to: merged (a whole model in float32) or adapter
        out: a new folder (default: RUN/export/TO)
        hub: OWNER/NAME, a private repository; the token comes from HF_TOKEN
    """
    folder = kit.runs.find_folder(run)
    return Output(
        data=kit.training.push_to_hub(folder, hub, to)
        if hub
        else kit.training.export(folder, to, out)
    )


def run(
    notebook: str,
    /,
    *,
    profile: str | None = None,
    set: Values = None,
    out: Path | None = None,
    again: bool = False,
    names: bool = False,
) -> Output:
    """Run a notebook headless; a line per cell. Parameters are checked before anything starts.

    A finished run with the same code, data and parameters is found again. A killed one goes on.

    Args:
        notebook: a number (3), a name or a path
        profile: test, cpu, t4, gpu or cluster
        set: a parameter, for example --set steps=20
        out: folder of runs
        again: run from the start although it is finished
        names: list the notebook's parameters with meaning and default
    """
    if names:
        book = kit.runs.find_notebook(notebook)
        table = list(kit.runs.parameters.read(book).values())
        return Output(
            lines=[f"{p.name:20}  {p.default!r:12}  {p.meaning}" for p in table],
            data=table,
        )
    folder = kit.runs.run(
        notebook, set, profile=profile, out=out, again=again, echo=_echo
    )
    record = kit.runs.load(folder)
    return Output(
        lines=[f"{record.status}: {folder}"],
        data={
            "folder": folder,
            "status": record.status,
            "metrics": record.metrics,
        },
        next=command_line("report", folder),
        code=int(record.status != "done"),
    )


def sweep(
    notebook: str,
    /,
    *,
    grid: Texts = None,
    file: Path | None = None,
    profile: str | None = None,
    out: Path | None = None,
    jobs: int = 1,
    address: str | None = None,
) -> Output:
    """Run a notebook over a grid of parameters, each cell in a process of its own.

    The same command goes on where it stopped.

    Args:
        notebook: a number (3), a name or a path
        grid: values of a parameter, --grid seed=0,1,2
        file: cells as a table, a row for each (CSV, JSONL)
        profile: test, cpu, t4, gpu or cluster
        out: folder of runs (default: runs/sweep-NOTEBOOK)
        jobs: processes at once
        address: a Ray cluster, for example auto
    """
    if not (grid or file):
        raise kit.DataError(
            "the sweep has no cells", where="kit sweep", fix="--grid seed=0,1,2"
        )
    lists = {k: settings.parse(f"[{v}]", "--grid") for k, v in (grid or {}).items()}
    # Each row of the file is run with each combination of the grid.
    cells = [
        {**row, **cell}
        # Where one side is absent it gives one empty cell, which changes nothing.
        for row in kit.runs.cells_of(file or {})
        for cell in kit.runs.cells_of(lists)
    ]
    table = kit.runs.sweep(
        notebook,
        cells,
        profile=profile,
        out=out,
        jobs=jobs,
        address=address,
        echo=_echo,
    )
    folder = out or paths.runs() / f"sweep-{kit.runs.find_notebook(notebook).stem}"
    done = int((table["status"] == "done").sum())
    return Output(
        lines=[f"{done} of {count_of(len(cells), 'cell')} done: {folder}"],
        data=table,
        next=command_line("report", folder),
        code=int(done < len(cells)),
    )


def report(folder: Path | None = None, /, *, out: Path | None = None) -> Output:
    """Write one self-contained HTML report over a folder of runs, or of trainings.

    Args:
        folder: a folder of runs, or the name of one; default: the kit's runs
        out: default: report.html in that folder
    """
    folder = kit.runs.find_folder(folder) if folder else None
    path = kit.runs.report(folder, out)
    return Output(
        lines=[f"report: {path}"],
        data=kit.runs.compare(folder),
        next=path,
    )


# heading in the help -> commands, in the order of the steps
STEPS: dict[str, tuple[Callable[..., Output], ...]] = {
    "Start": (check, demo, fetch),
    "Inspect": (inspect,),
    "Get answers, and compare models": (answer, compare),
    "Judge, and compare with people": (
        judge,
        explain,
        tune,
        agree,
        rate,
        label,
        view,
        calibrate,
    ),
    "Train": (train, export),
    "Run notebooks, and report": (run, sweep, report),
}


def _judges() -> Iterator[tuple[str, str, str]]:
    """The default model of an endpoint, its end of life, and whether a key is set (never the key)."""
    model = kit.judging.prices.catalog()["default"]
    warning = kit.judging.prices.shutdown_warning(model)
    yield (
        "judge model",
        warning or model,
        "name another one with --model" if warning else "",
    )
    yield (
        "OPENAI_API_KEY",
        "set"
        if "OPENAI_API_KEY" in os.environ
        else "not set; OpenAI's own models need it",
        "",
    )


def _line_of(finding: Any, *others: Any) -> str:
    """A finding: how bad, where, what is wrong, what to do. others : equal ones in other places."""
    place = finding.where or f"{finding.task_id} / {finding.criterion_id}"
    more = f" and {len(others)} more" if others else ""
    remedy = f"; {finding.suggestion}" if finding.suggestion else ""
    return f"{finding.severity}: {place}{more}: {finding.message}{remedy}"


def _echo(line: str) -> None:
    # On stderr, so that --json leaves nothing but JSON on stdout.
    print(line, file=sys.stderr, flush=True)


def _free_name(file: str | Path) -> str:
    """The name of a file that is not there: a number is added to one that is."""
    path, number = Path(file), 1
    while path.exists():
        number += 1
        path = path.with_stem(f"{Path(file).stem}_{number}")
    return str(path)


def _spare_inputs(out: Path | None, *inputs: Any) -> None:
    """DataError where a file that is read would be replaced by the output; before anything is asked or paid."""
    for file in filter(None, inputs):
        if out and Path(file).resolve() == out.resolve():
            raise kit.DataError(
                f"the output would replace the input {file}",
                fix="another name for the output",
            )


def _spare_other_files(
    out: Path, what: str, is_ours: Callable[[Path], bool]
) -> None:
    """DataError where a file holds something else than `what`, which may be replaced."""
    # A run that got no answer left an empty file.
    if out.exists() and out.stat().st_size:
        # What cannot be read is not ours.
        with suppress(kit.KitError, UnicodeError):
            if is_ours(out):
                return
        raise kit.DataError(
            f"{out} holds something else than {what}, and would be replaced",
            fix=f"give the output another name, such as {_free_name(out)}",
        )


def _is_page(file: Path) -> bool:
    return file.read_text("utf-8").lstrip().lower().startswith("<!doctype html>")


def _is_judged(file: Path) -> bool:
    judges = (getattr(r, "judge", "human") for r in _records(kit.load(file)))
    return not any(name.startswith("human") for name in judges)


def _records(tasks: Any) -> list[Any]:
    return [*tasks.responses, *tasks.tasks, *tasks.verdicts]


def _labels(files: str) -> list[Any]:
    """People's labels of one file, or of several with commas between. Who has no name is called by the file's."""
    return [
        replace(v, judge=f"human:{Path(name).stem}") if v.judge == "human" else v
        for name in files.split(",")
        for v in kit.load(name).verdicts
    ]


def _joined(tasks: str, answers: str | None) -> Any:
    """Tasks with the answers of another file."""
    return kit.load(tasks).joined(kit.load(answers)) if answers else kit.load(tasks)


def _asking(
    judge: Any,
    model: str | None = None,
    base_url: str | None = None,
    prompt: Path | None = None,
    options: dict[str, Any] | None = None,
    ledger: Path | None = None,
) -> dict[str, Any]:
    """Who judges, and where verdicts are stored: a judge's name, or its mapping where options say more."""
    more = {
        "base_url": base_url,
        "prompt": prompt and str(prompt),
        **(options or {}),
    }
    more = {name: value for name, value in more.items() if value is not None}
    kind, _, subject = (judge or "").partition(":")
    if kind.startswith("{"):
        if model:
            more["model"] = model
        # An option that a mapping has, too, wins; one that its kind does not have is refused.
        judge = {**settings.parse(judge, "--judge"), **more}
    elif model or more:
        # "small" names no subject, and "" would be taken for one
        judge = {kind: model or subject or None, **more}
    # None is the default ledger, shared by all: what one paid for, the others find.
    return {"judge": judge, "ledger": ledger}
