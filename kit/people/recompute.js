// Scores, agreement and intervals from embedded verdicts, as kit.rewards.aggregate and kit.stats
// compute them (equal to 1e-9: tests/browser/test_browser_recompute.py). Level .95 throughout.
const kitStats = (() => {
  const Z = 1.959963984540054, LEAST = 1.5, PULL = 0.25, LONE = 3, UNSEEN = 2, MOST = 2, NOISE = 0.5, FARTHER = 1.5;
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

  function limits(value, se, df, clusters, [low, high], leaning, most) {
    const open = !isFinite(low) || !isFinite(high), q = quantile(Math.max(clusters - 1, 1));
    const at = open ? NaN : (value - low) / (high - low);
    if (se <= 1e-12 * Math.max(1, Math.abs(value))) {
      if (open) return [null, null];
      const edge = wilson(Math.min(Math.max(at, 0), 1) * clusters, clusters, q).map(e => low + e * (high - low));
      const rare = q * q * (high - low) / clusters;  // what was not drawn is rare
      return [Math.max(edge[0], value - rare), Math.min(edge[1], value + rare)];
    }
    const half = quantile(df) * se;
    let ends = [value - half, value + half];
    if (at > 0 && at < 1) {
      const step = half / (high - low) / (at * (1 - at)), middle = Math.log(at / (1 - at));
      ends = [-1, 1].map(s => low + 0.5 * (1 + Math.tanh((middle + s * step) / 2)) * (high - low));
    }
    // no farther off than rare clusters that each count for the range, or for the most that one did
    const [down, up] = [Math.max(-leaning, 0), Math.max(leaning, 0)];
    const each = open ? most : Math.max(most, (high - low) / clusters);
    const [below, above] = [down, up].map(part => q * q / 2 * each * (1 + (open ? FARTHER * part : 0))).map(r => r + Math.hypot(r, q * se));
    return [
      Math.max(ends[0] - down * half, value - below, low),
      Math.min(ends[1] + up * half, value + above, high),
    ];
  }
  // rows of sums by cluster -> estimate with a jackknife-t interval (kit.stats.clusters.estimate)
  // kinds: what a row of each kind adds, with room for up to two unseen clusters of one (reach)
  function estimate(stat, gradient, rows, size, n, bounds, kinds = [], leans = false) {
    const c = rows.length;
    if (!c) return null;
    const total = rows[0].map((_, k) => sum(rows.map(r => r[k]))), value = stat(total);
    if (Number.isNaN(value)) return null;
    if (c < 2) return result(value, null, null, n, c);
    const left = rows.map(r => stat(total.map((t, k) => t - r[k])));
    let psi;
    if (left.every(Number.isFinite)) {
      const mean = sum(left) / c;
      psi = left.map(x => Math.sqrt((c - 1) / c) * (mean - x));
    } else {
      const slope = gradient(total);
      psi = rows.map(r => Math.sqrt(c / (c - 1)) * sum(r.map((x, k) => x * slope[k])));
    }
    const square = psi.map(x => x * x), se = Math.sqrt(sum(square));
    const worth = sum(size) ** 2 / sum(size.map(s => s * s));
    if (worth < LEAST) return { ...result(value, null, null, n, c), few: true };
    const under = sum(square.map(x => x * x)), carry = under > 0 ? sum(square) ** 2 / under : 0;
    const own = Math.min(c - 1, Math.max(1, 1.5 * carry - 1));
    const df = Math.min(own, Math.max(worth - 1, 1));
    const skew = leans && se > 0 ? sum(psi.map(x => x ** 3)) / se ** 3 : 0;
    const most = psi.reduce((x, y) => Math.max(x, Math.abs(y)), 0);
    const [low, high] = limits(value, se, df, c, bounds, skew, most);
    const more = kinds.flatMap(kind => [0.25, 0.5, 0.75, 1].map(s => kind.map(x => UNSEEN * n / drawn(size) * s * x)));
    const moved = more.map(m => stat(total.map((t, k) => t + m[k]))).filter(x => !Number.isNaN(x));
    if (!moved.length || low === null) return { ...result(value, low, high, n, c), se };
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
  // what clustered rows are worth; a giant cluster counts for MOST mean sizes (kit.stats.shares)
  function effective(groups, informative) {
    const size = groups.map(g => g.length), n = sum(size), c = groups.length;
    const total = groups.map(sum), square = groups.map(g => sum(g.map(x => x * x)));
    const part = size.map(s => Math.min(1, MOST * n / c / s)), of = xs => sum(xs.map((x, i) => part[i] * x));
    const pairs = Math.max(of(size.map(s => s - 1)), 1e-300);
    let alike = 1;
    if (c >= 2 && n > c) {
      const rows = size.map((s, i) => part[i] * s), most = sum(rows), mean = of(total) / most;
      const inside = of(size.map((s, i) => square[i] - total[i] ** 2 / s)) / pairs;
      const between = sum(rows.map((r, i) => r * (total[i] / size[i] - mean) ** 2)) - inside * of(rows.map(r => 1 - r / most));
      const apart = between / (most - sum(rows.map(r => r * r)) / most), whole = apart + inside;
      alike = whole > 1e-300 ? Math.min(Math.max(apart / whole, 0), 1) : 1;
    }
    alike += NOISE * (1 - alike) * Math.sqrt(2 * sum(size.map((s, i) => part[i] ** 2 * (1 - 1 / s)))) / pairs;
    const known = informative * c;
    alike = (known * alike + PULL) / (known + PULL);
    const variance = size.map(s => s + alike * (s * s - s)), told = variance.map((v, i) => v / size[i]);
    const found = { rows: n * n / sum(variance), alike: c < n ? alike : 0, df: Math.max(sum(told) ** 2 / sum(told.map(v => v * v)) - 1, 1) };
    // fewer where the large clusters have a rate of their own (kit.stats.shares: _apart)
    const mean = sum(total) / n, spread = sum(groups.flat().map(x => (x - mean) ** 2)) / n;
    const trust = size.map(s => Math.min(Math.max(n / LONE / s - 1, 0), 1));
    const far = total.map((t, i) => trust[i] * (t - size[i] * mean) ** 2 / Math.max(spread, 1e-300)), most = sum(far);
    const rest = sum(variance.map((v, i) => (1 - trust[i]) * v)), apart = n * n / (most + rest);
    if (!(most > 0) || !(apart < found.rows)) return found;
    const own = most ** 2 / sum(far.map(f => f * f)), kept = apart / found.rows;
    return { ...found, rows: apart, df: Math.max(1 / (kept / found.df + (1 - kept) / own), 1) };
  }
  // how many clusters of equal size these are worth (kit.stats.shares)
  function drawn(size) {
    const mean = sum(size) / size.length, rows = size.map(s => Math.min(s, MOST * mean));
    return sum(rows) ** 2 / sum(rows.map(x => x * x));
  }
  // the limits with room for clusters of one kind as a whole that were not drawn (kit.stats.shares)
  function allowing(value, [low, high], groups, alike, kinds) {
    const c = drawn(groups.map(g => g.length)), unseen = Math.min(UNSEEN, 1.25 * alike * c);
    const [least, most] = kinds.map(kind => (c * value + unseen * kind) / (c + unseen));
    const down = Math.max(value - least, 0), up = Math.max(most - value, 0);
    return [Math.max(value - Math.hypot(value - low, down), kinds[0]), Math.min(value + Math.hypot(high - value, up), kinds[1])];
  }
  function share(groups, clustered) {
    const n = sum(groups.map(g => g.length)), p = sum(groups.map(sum)) / n;
    const e = clustered ? effective(groups, 4 * p * (1 - p)) : { rows: n, df: Infinity, alike: 0 };
    const found = wilson(Math.min(p * e.rows, e.rows), e.rows, quantile(e.df));
    return allowing(p, found, groups, e.alike, [0, 1]);
  }
  const ratio = t => t[0] / t[1], slope = t => [1 / t[1], -t[0] / t[1] ** 2];
  const binary = xs => xs.every(x => x === null || x === 0 || x === 1);

  const unsaid = xs => xs.filter(x => x === null).length;

  function mean(xs, cluster, bounds = [0, 1]) {
    const groups = grouped(xs, cluster), n = sum(groups.map(g => g.length));
    const rows = groups.map(g => [sum(g), g.length]);
    const found = estimate(ratio, slope, rows, groups.map(g => g.length), n, bounds, [], true);
    const out = found && { ...found, missing: unsaid(xs) };
    const shares = [[0, 1], [-Infinity, Infinity]].some(ends => ends.every((x, i) => x === bounds[i]));
    if (!out || out.few || (cluster && groups.length < 2) || !shares || !binary(xs)) return out;
    const [low, high] = share(groups, !!cluster);
    return { ...out, low, high };
  }
  function difference(xs, ys, cluster) {
    const d = xs.map((x, i) => (x === null || ys[i] === null ? null : x - ys[i]));
    const groups = grouped(d, cluster), n = sum(groups.map(g => g.length));
    const rows = groups.map(g => [sum(g), g.length]);
    const open = [-Infinity, Infinity], known = zs => zs.filter((_, i) => d[i] !== null);
    const each = groups.map(g => sum(g) / g.length);  // what prompts drawn differ by (farthest)
    const unseen = [Math.min, Math.max].map(f => [each.reduce((x, y) => f(x, y), each[0]), 1]);
    const found = estimate(ratio, slope, rows, groups.map(g => g.length), n, open, unseen, true);
    const out = found && { ...found, missing: unsaid(d) };
    if (!out || !n || out.few || !binary([...known(xs), ...known(ys)]) || groups.length < 2) return out;
    const all = groups.flat(), differ = sum(all.map(Math.abs)) / n;
    const e = effective(groups, Math.min(1, 2 * differ));
    const [up, down] = [1, -1].map(s => (all.filter(x => x === s).length / n * e.rows + 1) / (e.rows + 2));
    const middle = up - down, se = Math.sqrt((up + down - middle ** 2) / (e.rows + 2));
    const half = quantile(cluster ? e.df : Infinity) * se;
    const near = [Math.max(Math.min(middle - half, out.value), -1), Math.min(Math.max(middle + half, out.value), 1)];
    const [low, high] = allowing(out.value, near, groups, e.alike, [-1, 1]);
    return { ...out, low, high };
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
      return (dpo - dpe) / (1 - pe) + (po - pe) * dpe / (1 - pe) ** 2;
    });
  };
  // the table at either limit of the share of rows that disagree (kit.stats.agreement)
  function atLimits(rows, groups) {
    const n = sum(groups.map(g => g.length)), t = [0, 1, 2, 3].map(k => sum(rows.map(r => r[k])) / n);
    const wrong = t[1] + t[2], right = t[0] + t[3];
    const apart = wrong ? [0, t[1] / wrong, t[2] / wrong, 0] : [0, 0.5, 0.5, 0];
    const both = right ? [t[0] / right, 0, 0, t[3] / right] : [0.5, 0, 0, 0.5];
    const [low, high] = share(groups.map(g => g.map(x => +(x === 1 || x === 2))), true);
    const more = (high - wrong) / Math.max(1 - wrong, 1e-300), less = (wrong - low) / Math.max(wrong, 1e-300);
    return [t.map((x, k) => x + more * (apart[k] - x)), t.map((x, k) => x + less * (both[k] - x))];
  }
  function agreement(judge, people, cluster) {
    const cells = judge.map((j, i) => (j === null || people[i] === null ? null : 2 * j + people[i]));
    const groups = grouped(cells, cluster), n = sum(groups.map(g => g.length));
    const rows = groups.map(g => [0, 1, 2, 3].map(k => g.filter(x => x === k).length));
    const size = groups.map(g => g.length);
    let kappa = estimate(cohen, cohenSlope, rows, size, n, [-1, 1], [[1, 0, 0, 0], [0, 0, 0, 1]]);
    if (kappa && kappa.low !== null) {  // no surer than the share of rows that disagree
      const near = atLimits(rows, groups).map(cohen), same = kappa.value > 1 - 1e-12;
      const known = near.filter(x => !Number.isNaN(x));
      kappa = { ...kappa, low: same ? near[0] : Math.min(kappa.low, ...known), high: same ? 1 : Math.max(kappa.high, ...known) };
    }
    kappa = kappa && { ...kappa, missing: unsaid(cells) };
    return { kappa, accuracy: mean(cells.map(x => (x === null ? null : +(x === 0 || x === 3))), cluster) };
  }
  return { mean, difference, agreement, quantile };
})();

// How verdicts become a score, as kit.rewards.aggregate: the names, and what each is in words.
const kitHows = {
  net: "net: the credit of the criteria over the positive weights",
  flip: "flip: the weighted share of credit",
  mean: "mean: the share of credit, unweighted",
  signed: "signed: the credit over all weights, at least 0",
  signed_unclipped: "signed_unclipped: the credit over all weights",
  positive_normalised: "positive_normalised: the credit over the positive weights, at least 1",
};
const kitKey = c => c.id + ": " + c.text;

// [low, high] of an answer's score, or null where nothing has a weight (Plan.evaluate and _combine)
// cut: the P(met), or value, from which a verdict of the judge is met; 0: as judged
function kitScore(task, a, how, times = {}, cut = 0) {
  const judged = v => v[1] < 2 && v[6] !== "code";
  const found = new Map(a.v.map(v => [v[0], cut && judged(v) ? +((v[3] ?? v[2]) >= cut - 1e-9) : v[2]]));
  const weight = c => c.weight * (times[kitKey(c)] ?? 1);
  if (!task.below) {
    task.below = new Map([[null, []]]);
    task.criteria.forEach((c, i) => {
      const parent = c.parent ?? null;
      task.below.set(parent, [...task.below.get(parent) ?? [], [c, i]]);
    });
  }
  const inner = how === "mean" ? "mean" : "flip";
  // what stands below a parent, without groups that score nothing (kit.rewards.aggregate.Plan)
  const counted = id => (task.below.get(id) ?? [])
    .filter(([c]) => !task.below.has(c.id) || counted(c.id).some(([b]) => weight(b)));
  function value([c, i]) {
    const v = found.get(i) ?? null;
    if (task.below.has(c.id)) return combine(counted(c.id), inner);
    return v === null ? [0, 1] : [v, v];
  }
  function combine(nodes, how) {
    const ws = nodes.map(([c]) => weight(c)), total = xs => xs.reduce((x, y) => x + y, 0);
    const positive = total(ws.filter(w => w > 0)), flips = how === "mean" || how === "flip";
    let scale = total(ws.map(Math.abs));
    if (how === "mean") scale = ws.filter(w => w).length;
    if (how === "positive_normalised") scale = Math.max(positive, 1);
    if (how === "net" && positive) scale = positive;
    if (!scale) return [0, 0];
    let low = 0, high = 0, shutLow = false, shutHigh = false;
    nodes.forEach((node, k) => {
      const [c] = node, fault = ws[k] < 0, w = how === "mean" ? Math.sign(ws[k]) : ws[k];
      const [x, y] = value(node), ends = [x, y].map(v => w * v - (fault && flips ? w : 0));
      const fails = v => c.gate !== undefined && !(fault ? v < c.gate : v >= c.gate);
      low += Math.min(...ends);
      high += Math.max(...ends);
      shutLow ||= fails(fault ? y : x);
      shutHigh ||= fails(fault ? x : y);
    });
    [low, high] = [low / scale, high / scale];  // divided last: all that can be met is 1 exactly
    if (how === "signed") [low, high] = [Math.max(low, 0), Math.max(high, 0)];
    return [shutLow ? Math.min(low, 0) : low, shutHigh ? Math.min(high, 0) : high];
  }
  const top = counted(null);
  return top.some(([c]) => weight(c)) ? combine(top, how) : null;
}

// How these answers were scored (null: in no way known here), and the widest interval that was paid.
function kitScored(data) {
  const near = (x, y) => Math.abs(x - y) <= 1e-9;
  const same = how => data.answers.every(a => {
    const found = a.low === null ? null : kitScore(data.tasks[a.t], a, how);
    return !found || (near(found[0], a.low) && near(found[1], a.high));
  });
  const width = paid => data.answers.filter(a => a.low !== null && (a.score !== null) === paid)
    .map(a => a.high - a.low);
  const most = width(true).reduce((x, y) => Math.max(x, y), 0), how = Object.keys(kitHows).find(same);
  if (!how) return { how: null, wide: 0.1 };
  return { how, wide: width(false).some(w => w <= 0.1) ? most : Math.max(most, 0.1) };
}

// The lowest and the highest score that these answers could have: every verdict unknown leaves it as
// open as it can be (kit.train.rollouts.span of Plan.range).
function kitSpan(data, rows, scores, settings) {
  const ranges = rows.map(i => kitScore(data.tasks[data.answers[i].t], { v: [] }, settings.how, settings.times) ?? [0, 0]);
  const low = Math.min(...ranges.map(r => r[0])), high = Math.max(...ranges.map(r => r[1]));
  const inside = scores.every(x => x === null || (low - 1e-9 <= x && x <= high + 1e-9));
  return inside && low < high ? [low, high] : [-Infinity, Infinity];
}

// settings: how (of kitHows), wide (the widest interval that has a score), times {criterion key: what
// its weights are multiplied by}, pass (score of an answer that passes), cut (P(met) or value of a
// verdict that is met; 0: as judged), cluster ("task", "group" or "none")
function kitRecompute(data, settings) {
  const SLACK = 1e-9;
  const unit = { task: t => "t" + t, group: t => "g" + (data.tasks[t].group ?? data.tasks[t].id), none: null }[settings.cluster];
  function score(a) {
    const found = kitScore(data.tasks[a.t], a, settings.how, settings.times, settings.cut);
    return found === null || found[1] - found[0] > settings.wide + 1e-12 ? null : found[0];
  }
  const sets = [...new Set(data.answers.map(a => a.set))], out = { sets: {}, change: null };
  const scored = data.answers.map(score);
  const columns = rows => (unit ? rows.map(i => unit(data.answers[i].t)) : null);
  for (const name of sets) {
    const rows = [...data.answers.keys()].filter(i => data.answers[i].set === name);
    const cluster = columns(rows), xs = rows.map(i => scored[i]);
    const passed = xs.map(x => (x === null ? null : +(x >= settings.pass - SLACK)));
    out.sets[name] = { score: kitStats.mean(xs, cluster, kitSpan(data, rows, xs, settings)), passed: kitStats.mean(passed, cluster) };
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
    if (v[5] === null || v[6] === "code" || data.uneven) return;
    const x = settings.cut ? v[3] ?? v[2] : v[2];  // as judged: a threshold may have decided
    judge.push(v[1] === 3 ? null : +(x >= (settings.cut || 0.5) - SLACK));
    people.push(+(v[5] >= 0.5));
    where.push(unit ? unit(a.t) : null);
  }));
  return judge.length ? { ...out, ...kitStats.agreement(judge, people, unit ? where : null) } : { ...out, kappa: null, accuracy: null };
}

// An element. What would turn the direction of the text around it is shown, not obeyed.
function kitMake(tag, of = {}, ...inner) {
  const el = Object.assign(document.createElement(tag), of);
  const turns = /[\u202a-\u202e\u2066-\u2069]/g, name = c => "\u2039U+" + c.charCodeAt(0).toString(16).toUpperCase() + "\u203a";
  el.append(...inner.filter(x => x !== null && x !== undefined).map(x => (typeof x === "string" ? x.replace(turns, name) : x)));
  return el;
}

// The controls and the numbers that follow them.
function kitPanel(root, data) {
  const make = kitMake, scored = kitScored(data), cluster = data.tasks.some(t => t.group) ? "group" : "task";
  const settings = { how: scored.how ?? "flip", wide: scored.wide, times: {}, pass: 0.5, cut: 0, cluster };
  const uses = new Map();
  data.tasks.forEach(t => t.criteria.filter(c => c.weight).forEach(c => {  // 0 times anything is 0
    const key = kitKey(c), old = uses.get(key);
    uses.set(key, (old || 0) + 1);
  }));
  const labelled = !data.uneven && data.answers.some(a => a.v.some(v => v[5] !== null && v[6] !== "code"));
  const tools = make("div", { className: "tools" }), more = make("details", {}, make("summary", {}, "weights of the criteria"));
  const slider = (label, from, to, step, value, change, words = String) => {
    const shown = make("output", {}, words(value));
    const input = make("input", { type: "range", min: from, max: to, step, value });
    input.oninput = () => { shown.textContent = words(+input.value); change(+input.value); draw(); };
    return make("label", { className: "wide" }, make("span", {}, label + ": ", shown), input);
  };
  const choice = (label, name, options) => {
    const select = make("select", {}, ...options.map(([value, text]) => make("option", { value }, text)));
    select.value = settings[name];
    select.onchange = () => { settings[name] = select.value; draw(); };
    tools.append(make("label", {}, label, select));
  };
  tools.append(slider("an answer passes from a score of", 0, 1, 0.05, 0.5, x => { settings.pass = x; }));
  if (labelled) tools.append(slider("in these numbers a verdict is met from P(met)", 0, 0.95, 0.05, 0, x => { settings.cut = x; }, x => x || "as judged"));
  choice("score", "how", Object.keys(kitHows).map(how => [how, how]));
  choice("intervals clustered by", "cluster", [["task", "prompts"], ["group", "groups of prompts"], ["none", "nothing: rows independent"]]);
  const sliders = make("div", { className: "tools" });
  const common = [...uses].sort((a, b) => b[1] - a[1]);
  common.slice(0, 24).forEach(([key]) => {  // a factor: tasks may give the criterion other weights
    sliders.append(slider(key, 0, 3, 0.25, 1, x => { settings.times[key] = x; }, x => "weight × " + x));
  });
  more.append(sliders);
  if (common.length > 24) more.append(make("p", { className: "note" }, common.length - 24 + " more criteria keep their weights."));
  const table = make("table", { className: "numbers" });
  const text = x => x.toFixed(3).replace(/^(-?)0\./, "$1.");
  const line = (name, e) => make("tr", {}, make("th", {}, name), make("td", {}, e ? text(e.value) : "unknown"),
    make("td", {}, e && e.low !== null ? "[" + text(e.low) + ", " + text(e.high) + "]" : "no interval"),
    make("td", {}, e ? "n = " + e.n + (e.clusters === e.n ? "" : " in " + e.clusters + " clusters") +
      (e.missing ? ", " + e.missing + " unknown" : "") : ""));
  function draw() {
    const now = kitRecompute(data, settings), rows = [];
    root.kit = { settings: structuredClone(settings), now };
    const names = [...new Set(data.answers.map(a => a.set))];  // an object's keys would be sorted
    for (const name of names) {
      const one = now.sets[name];
      rows.push(line("score " + name, one.score), line("share that passes " + name, one.passed));
    }
    if (names.length === 2) rows.push(line(names[1] + " less " + names[0] + ", by prompt", now.change));
    if (labelled) rows.push(line("kappa with people", now.kappa), line("accuracy", now.accuracy));
    if (data.uneven) rows.push(make("tr", {}, make("th", {}, "agreement with people"), make("td", { colSpan: 3 },
      "none: the labels were drawn with unequal probability, and this page does not weigh them; kit agree does")));
    table.replaceChildren(...rows);
    note.textContent = "Computed here from the verdicts below. Score: " + kitHows[settings.how] + "; at most 0 where a required " +
      "criterion fails; none where unknown verdicts leave it open by more than " + text(settings.wide) + ". " + origin();
  }
  const origin = () => {
    if (!scored.how) return "The scores below were made otherwise (of several parts, say): these are others.";
    const same = settings.how === scored.how && !settings.cut && Object.values(settings.times).every(x => x === 1);
    return same ? "It is the score that the answers have below." : "The answers below keep the score that they were given.";
  };
  const note = make("p", { className: "note" });
  root.classList.add("kv");
  root.append(tools, more, table, note);
  draw();
}
