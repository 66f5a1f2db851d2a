// Judgments as cards: filters, search, order. Every text goes in as text, never as HTML.
function kitJudgments(root, data) {
  const STEP = 40, WORDS = ["unmet", "met", "level", "unknown"];
  const make = kitMake;
  const number = x => (x === null || x === undefined ? "unknown" : x.toFixed(3).replace(/\.?0+$/, ""));
  const side = x => (x === null || x === undefined ? null : x >= 0.5);
  const parted = v => side(v[2]) !== null && side(v[5]) !== null && side(v[2]) !== side(v[5]);
  const surety = v => (v[3] === null ? 1 : Math.abs(v[3] - v[5]));
  const worst = a => Math.max(0, ...a.v.filter(parted).map(surety));
  const text = a => (a.hay ??= [data.tasks[a.t].id, data.tasks[a.t].prompt, a.id, a.whole || a.text, a.source,
    ...a.v.flatMap(v => [data.tasks[a.t].criteria[v[0]].text, v[4]])].join("\n").toLowerCase());
  const named = new Map();  // criteria by id and text: tasks may share them
  data.tasks.forEach(t => t.criteria.forEach(c => {
    c.key = c.id + ": " + c.text;
    if (!t.criteria.some(d => d.parent === c.id)) named.set(c.key, (named.get(c.key) || 0) + 1);  // a parent has no verdict
  }));
  const pick = (label, options) => {
    const select = make("select", {}, ...options.map(([value, name]) => make("option", { value }, name)));
    tools.append(make("label", {}, label, select));
    select.onchange = draw;
    return select;
  };
  const tools = make("div", { className: "tools" }), list = make("div"), said = make("p", { className: "note" });
  const end = make("div");
  const labelled = data.answers.some(a => a.v.some(v => v[5] !== null));
  const sets = [...new Set(data.answers.map(a => a.set))];
  const kinds = new Map();  // one answer in several sets: the verdicts of two judges
  data.answers.forEach(a => a.v.forEach(v => {
    const key = v.at = [a.t, a.id, v[0]].join("\n");
    kinds.set(key, (kinds.get(key) || new Set()).add(v[1] + "/" + v[2]));
  }));
  const flips = [...kinds.values()].some(s => s.size > 1);
  const status = pick("verdict", [["", "any"], ["met", "met"], ["unmet", "unmet"], ["level", "in between"],
    ["unknown", "unknown"], ...(labelled ? [["parted", "people disagree"]] : []),
    ...(flips ? [["flipped", "changed between the sets"]] : [])]);
  const common = [...named].sort((a, b) => b[1] - a[1]).slice(0, 300);
  const criterion = pick("criterion", [["", "any"], ...common.map(([k]) => [k, k])]);
  const set = sets.length > 1 ? pick("answers", [["", "all"], ...sets.map(s => [s, s])]) : { value: "" };
  const order = pick("order", [["", "as judged"], ["low", "lowest score first"], ["high", "highest score first"],
    ...(labelled ? [["worst", "worst disagreement first"]] : [])]);
  const search = make("input", { type: "search", placeholder: "words in prompts, answers, reasons" });
  tools.append(make("label", { className: "wide" }, "search", search));
  search.oninput = draw;
  let shown = [], drawn = 0;

  const wanted = v => {
    if (status.value === "parted") return parted(v);
    if (status.value === "flipped") return kinds.get(v.at).size > 1;
    return !status.value || WORDS[v[1]] === status.value;
  };
  const chosen = a => a.v.filter(v => !criterion.value || data.tasks[a.t].criteria[v[0]].key === criterion.value);
  function keep(a) {
    if (set.value && a.set !== set.value) return false;
    const rows = chosen(a);
    if ((status.value || criterion.value) && !rows.some(wanted)) return false;
    return !search.value.trim() || text(a).includes(search.value.trim().toLowerCase());
  }
  function draw() {
    shown = data.answers.filter(keep);
    const score = (a, none) => (a.score === null ? none : a.score);
    if (order.value === "low") shown.sort((a, b) => score(a, 9e9) - score(b, 9e9));
    if (order.value === "high") shown.sort((a, b) => score(b, -9e9) - score(a, -9e9));
    if (order.value === "worst") shown.sort((a, b) => worst(b) - worst(a));
    list.replaceChildren();
    drawn = 0;
    said.textContent = shown.length + " of " + data.answers.length + " answers, " +
      shown.reduce((n, a) => n + chosen(a).filter(wanted).length, 0) + (status.value ? " verdicts of this kind" : " verdicts");
    more();
  }
  function more() {
    list.append(...shown.slice(drawn, drawn + STEP).map(card));
    drawn = Math.min(shown.length, drawn + STEP);
    end.hidden = drawn >= shown.length;
  }
  function card(a) {
    const task = data.tasks[a.t];
    const score = a.score === null && a.low !== null ? "score unknown, between " + number(a.low) + " and " + number(a.high)
      : "score " + number(a.score);
    const head = make("h3", {}, task.id + " / " + a.id,
      make("small", {}, [a.set, a.source, score].filter(Boolean).join(" · ")));
    const answer = a.text === null ? make("p", { className: "note" }, "The answer's text is not here: give --answers.")
      : make("pre", { className: "text", tabIndex: 0 }, a.text);
    const whole = a.whole ? make("details", {}, make("summary", {}, "with its thoughts (judged only by criteria that name them)"),
      make("pre", { className: "text" }, a.whole)) : null;
    const prompt = make("details", {}, make("summary", {}, "the prompt"), make("pre", { className: "text" }, task.prompt));
    const all = chosen(a);
    const rows = make("ul", {}, ...all.filter(v => wanted(v)).map(v => verdict(task, v)));
    const rest = all.filter(v => !wanted(v));
    const others = rest.length ? make("details", {}, make("summary", {}, rest.length + " other verdicts"),
      make("ul", {}, ...rest.map(v => verdict(task, v)))) : null;
    return make("article", { className: "card" }, head, prompt,
      make("div", { className: "two" }, make("div", {}, answer, whole), make("div", {}, rows, others)));
  }
  function verdict(task, v) {
    const [c, kind, value, p, reason, label, judge, failure] = v;
    const word = WORDS[kind] === "level" ? "level " + number(value) : WORDS[kind];
    const small = [p === null ? "" : "P(met) " + number(p), failure || "", judge || "",
      task.criteria[c].weight === 1 ? "" : "weight " + number(task.criteria[c].weight)].filter(Boolean).join(" · ");
    const people = label === null ? null : make("div", { className: "people" },
      "people: " + ({ 0: "unmet", 1: "met" }[label] || number(label)) + (parted(v) ? ", the judge disagrees" : ""));
    const credit = task.criteria[c].weight < 0 ? ["good", "bad"] : ["bad", "good"];  // a fault that is not there is good
    return make("li", { className: WORDS[kind] + " " + (credit[kind] || "") + (parted(v) ? " parted" : "") },
      make("div", {}, make("span", { className: "is" }, word), " ", make("b", {}, task.criteria[c].id), " ",
        task.criteria[c].text, make("small", { className: "why" }, small ? "  " + small : "")),
      people, reason ? make("div", { className: "why" }, reason) : null);
  }
  const button = make("button", { type: "button", onclick: more }, "show more");
  end.append(button);
  new IntersectionObserver(es => es.some(e => e.isIntersecting) && more(), { rootMargin: "900px" }).observe(end);
  root.classList.add("kv");
  root.append(tools, said, list, end);
  draw();
}
