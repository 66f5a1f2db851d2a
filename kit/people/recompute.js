// Scores, agreement and intervals from embedded verdicts, as kit.rewards.aggregate and kit.stats
// compute them (equal to 1e-9: tests/browser/test_browser_recompute.py). Level .95 throughout.
const kitStats = (() => {
  const Z = 1.959963984540054, LEAST = 1.5, PULL = 0.25, UNSEEN = 2;
  const sum = xs => xs.reduce((a, b) => a + b, 0);
  const LANCZOS = [0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
    -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7];
  function lgamma(x) {
    if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - lgamma(1 - x);
    let a = LANCZOS[0];
    const t = x - 1 + 7.5;
    for (let i = 1; i < 9; i++) a += LANCZOS[i] / (x - 1 + i);
    return 0.5 * Math.log(2 * Math.PI) + (x - 0.5) * Math.log(t) - t + Math.log(a);
  }
  function beta(a, b, x) {  // regularised incomplete beta, continued fraction (DLMF 8.17.22)
    if (x > (a + 1) / (a + b + 2)) return 1 - beta(b, a, 1 - x);
    const front = Math.exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * Math.log(x) + b * Math.log1p(-x)) / a;
    let c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), out = d;
    for (let m = 1; m < 500; m++) {
      const even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
      const odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
      for (const part of [even, odd]) { d = 1 / (1 + part * d); c = 1 + part / c; out *= c * d; }
      if (Math.abs(c * d - 1) < 1e-16) break;
    }
    return front * out;
  }
  const kept = new Map();
  function quantile(df) {  // two-sided .95 of Student's t, Newton on the log of the tail
    if (!isFinite(df)) return Z;
    if (kept.has(df)) return kept.get(df);
    const tails = 0.05, scale = lgamma((df + 1) / 2) - lgamma(df / 2) - 0.5 * Math.log(df * Math.PI);
    let t = Z;
    for (let i = 0; i < 100; i++) {
      const above = beta(df / 2, 0.5, df / (df + t * t));
      const density = 2 * Math.exp(scale - (df + 1) / 2 * Math.log1p(t * t / df));
      const step = above / density * Math.log(above / tails);
      t += step;
      if (Math.abs(step) <= 1e-15 * t) break;
    }
    kept.set(df, t);
    return t;
  }
  function wilson(k, n, z) {
    const p = k / n, z2 = z * z, middle = (p + z2 / (2 * n)) / (1 + z2 / n);
    const half = z / (1 + z2 / n) * Math.sqrt(p * (1 - p) / n + z2 / (4 * n * n));
    return [k === 0 ? 0 : Math.max(middle - half, 0), k === n ? 1 : Math.min(middle + half, 1)];
  }
  const result = (value, low, high, n, clusters) => ({ value, low: low ?? null, high: high ?? null, n, clusters });

  function limits(value, se, df, clusters, [low, high]) {
    const open = !isFinite(low) || !isFinite(high);
    let at = open ? NaN : (value - low) / (high - low);
    if (se <= 1e-12 * Math.max(1, Math.abs(value))) {
      if (open) return [null, null];
      at = Math.min(Math.max(at, 0), 1);
      const edge = wilson(at * clusters, clusters, quantile(Math.max(clusters - 1, 1)));
      return edge.map(e => low + e * (high - low));
    }
    const half = quantile(df) * se;
    if (open || !(at > 0 && at < 1)) return [Math.max(value - half, low), Math.min(value + half, high)];
    const step = half / (high - low) / (at * (1 - at)), middle = Math.log(at / (1 - at));
    return [-1, 1].map(s => low + 0.5 * (1 + Math.tanh((middle + s * step) / 2)) * (high - low));
  }
  // rows of sums by cluster -> estimate with a jackknife-t interval (kit.stats.clusters.estimate)
  // kinds: what a row of each kind adds, with room for up to two unseen clusters of one (reach)
  function estimate(stat, gradient, rows, size, n, bounds, kinds = []) {
    const c = rows.length;
    if (!c) return null;
    const total = rows[0].map((_, k) => sum(rows.map(r => r[k]))), value = stat(total);
    if (Number.isNaN(value)) return null;
    if (c < 2) return result(value, null, null, n, c);
    const left = rows.map(r => stat(total.map((t, k) => t - r[k])));
    let psi;
    if (left.every(Number.isFinite)) {
      const mean = sum(left) / c;
      psi = left.map(x => Math.sqrt((c - 1) / c) * (x - mean));
    } else {
      const slope = gradient(total);
      psi = rows.map(r => Math.sqrt(c / (c - 1)) * sum(r.map((x, k) => x * slope[k])));
    }
    const square = psi.map(x => x * x), se = Math.sqrt(sum(square));
    const worth = sum(size) ** 2 / sum(size.map(s => s * s));
    if (worth < LEAST) return result(value, null, null, n, c);
    const under = sum(square.map(x => x * x)), carry = under > 0 ? sum(square) ** 2 / under : 0;
    const own = Math.min(c - 1, Math.max(1, 1.5 * carry - 1));
    const df = Math.min(own, Math.max(worth - 1, 1));
    const [low, high] = limits(value, se, df, c, bounds);
    const more = kinds.flatMap(kind => [0.25, 0.5, 0.75, 1].map(s => kind.map(x => UNSEEN * n / c * s * x)));
    const moved = more.map(m => stat(total.map((t, k) => t + m[k]))).filter(x => !Number.isNaN(x));
    if (!moved.length) return { ...result(value, low, high, n, c), se };
    const down = value - Math.min(value, ...moved), up = Math.max(value, ...moved) - value;
    const far = [value - Math.hypot(value - low, down), value + Math.hypot(high - value, up)];
    return { ...result(value, Math.max(far[0], bounds[0]), Math.min(far[1], bounds[1]), n, c), se };
  }
  // the known rows by cluster: [{x: [...]}, ...]; without clusters every row is its own
  function grouped(xs, cluster) {
    const by = new Map();
    xs.forEach((x, i) => {
      if (x === null) return;
      const key = cluster ? cluster[i] : i;
      if (!by.has(key)) by.set(key, []);
      by.get(key).push(x);
    });
    return [...by.values()];
  }
  function effective(groups, informative) {
    const size = groups.map(g => g.length), n = sum(size), c = groups.length;
    const total = groups.map(sum), square = groups.map(g => sum(g.map(x => x * x)));
    let alike = 1;
    if (c >= 2 && n > c) {
      const inside = sum(groups.map((_, i) => square[i] - total[i] ** 2 / size[i])) / (n - c);
      const between = (sum(total.map((t, i) => t * t / size[i])) - sum(total) ** 2 / n) / (c - 1);
      const typical = (n - sum(size.map(s => s * s)) / n) / (c - 1), all = between + (typical - 1) * inside;
      alike = all <= 1e-300 ? 1 : Math.min(Math.max((between - inside) / all, 0), 1);
    }
    const known = informative * c;
    alike = (known * alike + PULL) / (known + PULL);
    const variance = size.map(s => s + alike * (s * s - s)), whole = sum(variance);
    return { rows: n * n / whole, df: Math.max(whole ** 2 / sum(variance.map(v => v * v)) - 1, 1) };
  }
  function share(groups, clustered) {
    const n = sum(groups.map(g => g.length)), p = sum(groups.map(sum)) / n;
    const e = clustered ? effective(groups, 4 * p * (1 - p)) : { rows: n, df: Infinity };
    return wilson(Math.min(p * e.rows, e.rows), e.rows, quantile(e.df));
  }
  const ratio = t => t[0] / t[1], slope = t => [1 / t[1], -t[0] / t[1] ** 2];
  const binary = xs => xs.every(x => x === null || x === 0 || x === 1);

  function mean(xs, cluster) {  // of values in [0, 1]
    const groups = grouped(xs, cluster), n = sum(groups.map(g => g.length));
    const rows = groups.map(g => [sum(g), g.length]);
    const out = estimate(ratio, slope, rows, groups.map(g => g.length), n, [0, 1]);
    if (!out || (cluster && groups.length < 2) || !binary(xs)) return out;
    const [low, high] = share(groups, !!cluster);
    return { ...out, low, high };
  }
  function difference(xs, ys, cluster) {
    const d = xs.map((x, i) => (x === null || ys[i] === null ? null : x - ys[i]));
    const groups = grouped(d, cluster), n = sum(groups.map(g => g.length));
    const rows = groups.map(g => [sum(g), g.length]);
    const open = [-Infinity, Infinity];
    const out = estimate(ratio, slope, rows, groups.map(g => g.length), n, open);
    const both = xs.filter((x, i) => d[i] !== null).concat(ys.filter((y, i) => d[i] !== null));
    if (!out || !n || !binary(both) || groups.length < 2) return out;
    const all = groups.flat(), differ = sum(all.map(Math.abs)) / n;
    const e = effective(groups, Math.min(1, 2 * differ));
    const [up, down] = [1, -1].map(s => (all.filter(x => x === s).length / n * e.rows + 1) / (e.rows + 2));
    const middle = up - down, se = Math.sqrt((up + down - middle ** 2) / (e.rows + 2));
    const half = quantile(cluster ? e.df : Infinity) * se;
    const low = Math.max(Math.min(middle - half, out.value), -1);
    return { ...out, low, high: Math.min(Math.max(middle + half, out.value), 1) };
  }
  // cells: unmet-unmet, unmet-met, met-unmet, met-met (judge first)
  const margins = t => {
    const n = sum(t), r = [t[0] + t[1], t[2] + t[3]], c = [t[0] + t[2], t[1] + t[3]];
    return { n, r, c, po: (t[0] + t[3]) / n, pe: (r[0] * c[0] + r[1] * c[1]) / (n * n) };
  };
  const cohen = t => {
    const { po, pe } = margins(t);
    return Math.abs(1 - pe) < 1e-14 ? NaN : (po - pe) / (1 - pe);
  };
  const cohenSlope = t => {
    const { n, r, c, po, pe } = margins(t);
    return t.map((_, k) => {
      const i = k >> 1, j = k & 1, dpo = ((i === j ? 1 : 0) - po) / n;
      const dpe = (c[i] + r[j]) / (n * n) - 2 * pe / n;
      return dpo / (1 - pe) + (po - pe) * dpe / (1 - pe) ** 2;
    });
  };
  function agreement(judge, people, cluster) {
    const cells = judge.map((j, i) => (j === null || people[i] === null ? null : 2 * j + people[i]));
    const groups = grouped(cells, cluster), n = sum(groups.map(g => g.length));
    const rows = groups.map(g => [0, 1, 2, 3].map(k => g.filter(x => x === k).length));
    const size = groups.map(g => g.length), c = groups.length;
    let kappa = estimate(cohen, cohenSlope, rows, size, n, [-1, 1], [[1, 0, 0, 0], [0, 0, 0, 1]]);
    if (kappa && (kappa.value === 1 || (kappa.se === 0 && kappa.value > 1 - 1e-12))) {
      const { pe } = margins([0, 1, 2, 3].map(k => sum(rows.map(r => r[k]))));
      kappa = { ...kappa, low: Math.max((c / (c + Z * Z) - pe) / (1 - pe), -1), high: 1 };
    }
    return { kappa, accuracy: mean(cells.map(x => (x === null ? null : +(x === 0 || x === 3))), cluster) };
  }
  return { mean, difference, agreement, quantile };
})();

// settings: weights {criterion key: weight}, pass (score of an answer that passes), cut (P(met) or
// value of a verdict that is met), cluster ("task", "group" or "none")
function kitRecompute(data, settings) {
  const SLACK = 1e-9, WIDE = 0.1 + 1e-12;
  const key = c => c.id + ": " + c.text;
  const weight = c => settings.weights[key(c)] ?? c.weight;
  const unit = { task: t => "t" + t, group: t => "g" + (data.tasks[t].group ?? data.tasks[t].id), none: null }[settings.cluster];
  function score(a) {  // kit.rewards.aggregate.grade(how="flip"): 0 where a required criterion fails
    const found = new Map(a.v.map(v => [v[0], v[2]]));
    let low = 0, high = 0, whole = 0, shutLow = false, shutHigh = false;
    data.tasks[a.t].criteria.forEach((c, i) => {
      const w = weight(c), v = found.get(i) ?? null, fault = w < 0;
      const [worst, best] = v === null ? [+fault, +!fault] : [v, v];
      const credit = x => (fault ? -w * (1 - x) : w * x);
      const fails = x => c.gate !== undefined && !(fault ? x < c.gate : x >= c.gate);
      whole += Math.abs(w);
      low += credit(worst);
      high += credit(best);
      shutLow ||= fails(worst);
      shutHigh ||= fails(best);
    });
    [low, high] = [shutLow ? 0 : low, shutHigh ? 0 : high];
    return !whole || (high - low) / whole > WIDE ? null : low / whole;
  }
  const sets = [...new Set(data.answers.map(a => a.set))], out = { sets: {}, change: null };
  const scored = data.answers.map(score);
  const columns = rows => (unit ? rows.map(i => unit(data.answers[i].t)) : null);
  for (const name of sets) {
    const rows = [...data.answers.keys()].filter(i => data.answers[i].set === name);
    const cluster = columns(rows), xs = rows.map(i => scored[i]);
    const passed = xs.map(x => (x === null ? null : +(x >= settings.pass - SLACK)));
    out.sets[name] = { score: kitStats.mean(xs, cluster), passed: kitStats.mean(passed, cluster) };
  }
  if (sets.length === 2) {  // paired by task: the mean of a task's answers, second less first
    const of = name => data.tasks.map((_, t) => {
      const xs = scored.filter((x, i) => x !== null && data.answers[i].t === t && data.answers[i].set === name);
      return xs.length ? xs.reduce((a, b) => a + b, 0) / xs.length : null;
    });
    const cluster = unit ? data.tasks.map((_, t) => unit(t)) : null;
    out.change = kitStats.difference(of(sets[1]), of(sets[0]), cluster);
  }
  const judge = [], people = [], where = [];
  data.answers.forEach(a => a.v.forEach(v => {
    if (v[5] === null || v[6] === "code") return;
    const x = v[1] === 3 ? null : v[3] ?? v[2];
    judge.push(x === null ? null : +(x >= settings.cut - SLACK));
    people.push(+(v[5] >= 0.5));
    where.push(unit ? unit(a.t) : null);
  }));
  return judge.length ? { ...out, ...kitStats.agreement(judge, people, unit ? where : null) } : { ...out, kappa: null, accuracy: null };
}

// The controls and the numbers that follow them.
function kitPanel(root, data) {
  const make = (tag, of = {}, ...inner) => {
    const el = Object.assign(document.createElement(tag), of);
    el.append(...inner);
    return el;
  };
  const settings = { weights: {}, pass: 0.5, cut: 0.5, cluster: data.tasks.some(t => t.group) ? "group" : "task" };
  const uses = new Map();
  data.tasks.forEach(t => t.criteria.forEach(c => {
    const key = c.id + ": " + c.text, old = uses.get(key);
    uses.set(key, { c, n: (old ? old.n : 0) + 1 });
  }));
  const labelled = data.answers.some(a => a.v.some(v => v[5] !== null && v[6] !== "code"));
  const tools = make("div", { className: "tools" }), more = make("details", {}, make("summary", {}, "weights of the criteria"));
  const slider = (label, from, to, step, value, change) => {
    const shown = make("output", {}, String(value));
    const input = make("input", { type: "range", min: from, max: to, step, value });
    input.oninput = () => { shown.textContent = input.value; change(+input.value); draw(); };
    return make("label", { className: "wide" }, make("span", {}, label + ": ", shown), input);
  };
  tools.append(slider("an answer passes from a score of", 0, 1, 0.05, 0.5, x => { settings.pass = x; }));
  if (labelled) tools.append(slider("a verdict is met from P(met)", 0.05, 0.95, 0.05, 0.5, x => { settings.cut = x; }));
  const choice = make("select", {}, ...[["task", "prompts"], ["group", "groups of prompts"], ["none", "nothing: rows independent"]]
    .map(([value, name]) => make("option", { value }, name)));
  choice.value = settings.cluster;
  choice.onchange = () => { settings.cluster = choice.value; draw(); };
  tools.append(make("label", {}, "intervals clustered by", choice));
  const sliders = make("div", { className: "tools" });
  const common = [...uses].sort((a, b) => b[1].n - a[1].n);
  common.slice(0, 24).forEach(([key, { c }]) => {
    const end = Math.max(3, Math.abs(c.weight) * 2);
    sliders.append(slider(key, -end, end, 0.25, c.weight, x => { settings.weights[key] = x; }));
  });
  more.append(sliders);
  if (common.length > 24) more.append(make("p", { className: "note" }, common.length - 24 + " more criteria keep their weights."));
  const table = make("table", { className: "numbers" });
  const text = x => x.toFixed(3).replace(/^(-?)0\./, "$1.");
  const line = (name, e) => make("tr", {}, make("th", {}, name), make("td", {}, e ? text(e.value) : "unknown"),
    make("td", {}, e && e.low !== null ? "[" + text(e.low) + ", " + text(e.high) + "]" : "no interval"),
    make("td", {}, e ? "n = " + e.n + (e.clusters === e.n ? "" : " in " + e.clusters + " clusters") : ""));
  function draw() {
    const now = kitRecompute(data, settings), rows = [];
    root.kit = { settings: structuredClone(settings), now };
    for (const [name, one] of Object.entries(now.sets)) {
      rows.push(line("score " + name, one.score), line("share that passes " + name, one.passed));
    }
    const names = Object.keys(now.sets);
    if (names.length === 2) rows.push(line(names[1] + " less " + names[0] + ", by prompt", now.change));
    if (labelled) rows.push(line("kappa with people", now.kappa), line("accuracy", now.accuracy));
    table.replaceChildren(...rows);
  }
  root.classList.add("kv");
  root.append(tools, more, table, make("p", { className: "note" }, "Computed here from the verdicts below. Score: " +
    "the weighted share of credit, 0 where a required criterion fails; an answer whose unknown verdicts leave it open by more than .1 has none."));
  draw();
}
