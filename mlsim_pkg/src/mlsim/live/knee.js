// Where waiting bends: arrivals against the wait for the first token and the time per token, for
// one or several copies of a service. Means are closed forms, computed here; tails were simulated
// at some rates when the page was made, and lie between those.
import { answer } from "./answer.js";
import { between, frame, path, redraw } from "./chart.js";
import { draw, live, make, set, shown, write } from "./live.js";

const PANELS = [
  { name: "first", unit: "s", scale: 1, label: "First token (s)" },
  { name: "each", unit: "ms", scale: 1000, label: "Time per token (ms)" },
];
const SERIES = [
  { name: "mean", tone: "chart-a", words: "Mean (closed form)" },
  { name: "p50", tone: "chart-b", words: "Half of the users wait less" },
  { name: "p99", tone: "chart-c", words: "One in a hundred waits longer" },
];
const POINTS = 40; // of a line

/** Return the means of a copy at a rate, { first, each } in seconds; null beyond saturation. */
export function means(data, words, rate) {
  const found = answer({ rate }, { lengths: words }, data.answer);
  return found.refusal ? null : { first: found.steady_first_token, each: found.token_interval };
}

/** Return the points of a line, [requests a second, time], for so many copies. */
export function line(data, words, copies, panel, series) {
  const lengths = data.lengths[words];
  if (series !== "mean") return lengths.tails[copies].map((each) => [each.rate, each[panel][series]]);
  lengths.means ??= Array.from({ length: POINTS }, (_, at) => {
    const rate = lengths.saturation * (0.02 + 0.97 * (1 - (1 - at / (POINTS - 1)) ** 1.5));
    return [rate, means(data, words, rate)];
  });
  return lengths.means.map(([rate, each]) => [copies * rate, each[panel]]);
}

/** Return what is known at a state: times in seconds by panel and series, null where unknown. */
export function known(data, state) {
  const words = state.lengths ?? Object.keys(data.lengths)[0];
  const full = state.rate >= data.lengths[words].copies[state.copies];
  const mean = full ? null : means(data, words, state.rate / state.copies);
  return Object.fromEntries(PANELS.map(({ name }) => [name, {
    mean: mean?.[name] ?? null,
    ...Object.fromEntries(["p50", "p99"].map((part) => [part, full ? null : between(line(data, words, state.copies, name, part), state.rate)])),
  }]));
}

/** Draw into an element, and let readers move it. */
export function mount(element, data) {
  const goals = { first: data.goals[0], each: data.goals[1] };
  const wordsOf = (state) => state.lengths ?? Object.keys(data.lengths)[0];
  const lengthsOf = (state) => data.lengths[wordsOf(state)];
  const counts = Object.keys(Object.values(data.lengths)[0].tails).map(Number);
  const panels = PANELS.map((each) => ({ ...each }));
  const rows = {};
  let svg, drawn;

  function start({ picture }) {
    svg = draw("svg", { role: "img" });
    for (const panel of panels) {
      const dots = SERIES.map(({ tone }) => draw("circle", { class: `chart-dot ${tone}` }));
      panel.group = { frame: draw("g"), lines: draw("g"), rate: draw("line", { class: "chart-here" }), dots };
      svg.append(panel.group.frame, panel.group.lines, panel.group.rate, ...dots);
    }
    const head = make("tr", {}, make("td"), make("th", { scope: "col" }, "First token"), make("th", { scope: "col" }, "Per token"));
    const body = make("tbody");
    for (const { name, tone, words } of SERIES) {
      const cells = PANELS.map(() => make("td"));
      rows[name] = cells;
      body.append(make("tr", {}, make("th", { scope: "row" }, make("span", { class: `knee-sign ${tone}` }), words), ...cells));
    }
    const table = make("table", { class: "knee-table" }, make("thead", {}, head), body);
    picture.append(svg, table);
  }

  function boxes(width) {
    const beside = width > 560;
    const wide = beside ? (width - 2 * 44 - 30) / 2 : width - 44 - 12;
    const high = beside ? 230 : 170;
    return PANELS.map((_, at) => ({
      left: 40 + (beside ? at * (wide + 74) : 0),
      top: 26 + (beside ? 0 : at * (high + 82)),
      width: wide,
      height: high,
    }));
  }

  /** Draw a panel but for the rate: its axes and lines stay until copies, lengths or width change. */
  function drawPanel({ name, scale, label, group }, box, state, lengths) {
    const y = { low: 0, high: data.most[name] * scale, label };
    const axes = frame(group.frame, box, { low: 0, high: data.rates, label: "Requests per second" }, y);
    redraw(group.lines, (put) => {
      const goal = axes.up(goals[name] * scale);
      put("line", { x1: box.left, x2: axes.right, y1: goal, y2: goal, class: "chart-goal" });
      put("text", { x: axes.right, y: goal - 5, "text-anchor": "end", class: "muted" }, "goal");
      const points = (copies, series) => line(data, wordsOf(state), copies, name, series).map(([x, t]) => [x, t * scale]);
      for (const copies of counts.filter((each) => each !== state.copies)) {
        const [x, t] = points(copies, "p99").findLast((each) => each[1] <= y.high) ?? [0, 0];
        put("path", { d: path(points(copies, "p99"), axes, y.high), class: "chart-line chart-faint chart-c" });
        put("text", { x: axes.across(x) + 3, y: axes.up(t) - 4, class: "knee-count" }, String(copies));
      }
      const end = axes.across(lengths.copies[state.copies]);
      const side = end > box.left + box.width / 2 ? -4 : 4;
      put("line", { x1: end, x2: end, y1: box.top, y2: axes.bottom, class: "knee-full" });
      put("text", { x: end + side, y: axes.bottom - 6, "text-anchor": side < 0 ? "end" : "start", class: "knee-count" }, "full");
      for (const { name: series, tone } of SERIES) {
        const all = points(state.copies, series);
        put("path", { d: path(all, axes, y.high), class: `chart-line ${tone}` });
        if (series === "mean") continue;
        for (const [x, t] of all) if (t <= y.high) put("circle", { cx: axes.across(x), cy: axes.up(t), r: 2.5, class: `knee-run ${tone}` });
      }
    });
    group.axes = { ...axes, high: y.high, top: box.top };
  }

  /** Mark the rate in a panel. */
  function markRate({ name, scale, group: { axes, rate, dots } }, state, now) {
    const at = axes.across(state.rate);
    set(rate, { x1: at, x2: at, y1: axes.top, y2: axes.bottom });
    SERIES.forEach(({ name: series }, number) => {
      const value = now[name][series];
      const seen = value !== null && value * scale <= axes.high;
      set(dots[number], { cx: at, cy: seen ? axes.up(value * scale) : 0, r: seen ? 5.5 : 0 });
    });
  }

  /** Return a time as people read it, or what stands for none. */
  function time(value, { unit, scale }) {
    return value === null ? "–" : `${(value * scale).toFixed(unit === "s" ? 2 : 1)} ${unit}`;
  }

  function place(x, { width }) {
    const [one, two] = boxes(width);
    const box = two.left > one.left && x > one.left + one.width + 20 ? two : one;
    return ((x - box.left) / box.width) * data.rates;
  }

  function say(state) {
    const lengths = lengthsOf(state);
    const [copies, full] = [state.copies === 1 ? "1 copy" : `${state.copies} copies`, lengths.copies[state.copies]];
    const rate = `${shown(state.rate)} requests per second on ${copies}`;
    if (state.rate >= full) {
      const left = (state.rate - full) * 3600;
      return `${rate}: more than can be served, ${shown(full)} at most. The queue grows without end; after an hour ${shown(Number(left.toPrecision(2)))} people wait.`;
    }
    const now = known(data, state);
    const share = `${rate}: ${shown((100 * state.rate) / full, 2)} % of the load that saturates.`;
    if (now.first.p99 === null) return `${share} No run was made so close to the end.`;
    const late = PANELS.filter(({ name }) => now[name].p99 > goals[name]).map(({ name }) => ({ first: "its first token", each: "each further token" })[name]);
    if (!late.length) return `${share} Ninety-nine users in a hundred are served within both goals.`;
    return `${share} One user in a hundred waits longer than the goal for ${late.join(" and ")}.`;
  }

  live(element, data, {
    start,
    say,
    drag: { part: () => svg, handle: "rate", value: place },
    draw(state, parts, said) {
      const lengths = lengthsOf(state);
      const now = known(data, state);
      const wanted = `${parts.width} ${state.copies} ${state.lengths}`;
      if (drawn !== wanted) {
        drawn = wanted;
        const placed = boxes(parts.width);
        const height = placed[1].top + placed[1].height + 42;
        set(svg, { viewBox: `0 0 ${parts.width} ${height}` });
        svg.style.height = `${height}px`;
        panels.forEach((panel, at) => drawPanel(panel, placed[at], state, lengths));
      }
      set(svg, { "aria-label": said });
      panels.forEach((panel) => markRate(panel, state, now));
      for (const { name: series } of SERIES) {
        PANELS.forEach((panel, at) => {
          const value = now[panel.name][series];
          write(rows[series][at], time(value, panel));
          rows[series][at].classList.toggle("knee-late", value > goals[panel.name]);
        });
      }
    },
  });
}
