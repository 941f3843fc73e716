// The tank: what fills a device's memory while it serves users, and what runs over; beside it, how fast
// they are served: at most, by the calibrated estimate, and as measured where somebody did.
import { answer } from "./answer.js";
import { ticks } from "./chart.js";
import { draw, live, make, set, shown, write } from "./live.js";

const GIB = 2 ** 30;
const LAYERS = [
  { name: "reserve", words: "Everything else", tone: "tank-reserve" },
  { name: "weight_memory", words: "Weights", tone: "chart-a" },
  { name: "activation_memory", words: "Activations", tone: "tank-activations" },
  { name: "cache_memory", words: "KV cache", tone: "chart-c" },
];
const RATES = [
  { name: "time_per_output_token", words: "Time per token", form: (value) => `${shown(1e3 * value)}\u00a0ms` },
  { name: "user_token_rate", words: "Tokens/s for each" },
  { name: "decode_throughput", words: "Tokens/s of all" },
  { name: "output_throughput", words: "with prefill" },
];
const COLUMNS = { bound: "Limit", calibrated: "Estimate", measured: "Measured" };
// The picture, in pixels: it keeps its size, so that letters keep theirs.
const WIDE = 340;
const HIGH = 372;
const TANK = { left: 62, right: 196, rim: 74, floor: 326 };
const LINE = 17;

/** Return what is known at a state, in base units: bytes by layer, rates by estimate, and the band. */
export function known(data, state) {
  const handles = Object.fromEntries(data.handles.map(({ name }) => [name, state[name]]));
  const choices = Object.fromEntries(data.choices.map(({ name }) => [name, state[name]]));
  const [most, found] = ["bound", "calibrated"].map((estimate) => answer(handles, { ...choices, estimate }, data.answer));
  const run = data.measured.find((each) => Object.keys(handles).every((name) => each[name] === state[name]) && data.choices.every(({ name, start }) => state[name] === start));
  const time = found.time_per_output_token;
  return {
    ...found,
    reserve: data.capacity - data.usable,
    bound: most,
    calibrated: found,
    measured: run && { output_throughput: run.rate },
    band: time && data.band && [Math.max(time / data.band[1], most.time_per_output_token), time / data.band[0]],
  };
}

const gib = (bytes) => `${shown(bytes / GIB)}\u00a0GiB`;
const people = (count) => (count === 1 ? "1 user" : `${shown(count)} users`);

/** Draw into an element, and let readers fill it. */
export function mount(element, data) {
  const scale = (TANK.floor - TANK.rim) / data.capacity;
  const y = (bytes) => TANK.floor - scale * bytes;
  const cells = {};
  const layers = LAYERS.map((each) => ({ ...each, rect: draw("rect", { x: TANK.left, width: TANK.right - TANK.left, class: `tank-layer ${each.tone}` }), label: labelled(each.words) }));
  const free = labelled("Free");
  const spill = { over: draw("path"), puddle: draw("ellipse", { cx: (TANK.left + TANK.right) / 2, cy: TANK.floor + 12, ry: 6 }) };
  const users = { pattern: draw("pattern", { patternUnits: "userSpaceOnUse", width: 8 }), line: draw("rect", { width: 8, height: 1 }), rect: draw("rect", { x: TANK.left, width: TANK.right - TANK.left }) };
  const guess = { line: draw("line", { x1: TANK.left, x2: TANK.right, class: "tank-guess" }), text: draw("text", { x: (TANK.left + TANK.right) / 2, "text-anchor": "middle", class: "tank-halo" }) };
  const refused = draw("text", { x: 8, y: 18, class: "tank-refused" });
  const beyond = draw("text", { x: 8, y: 18 + LINE });
  const runs = new Map();
  let svg;
  let last = ["", null];

  /** Return what is known at a state: asked once for each. */
  function now(state) {
    const key = JSON.stringify(state);
    if (last[0] !== key) last = [key, known(data, state)];
    return last[1];
  }

  /** Return a label of lines at the right of the tank, with what leads to it. */
  function labelled(words) {
    const lines = [0, 1, 2].map((at) => draw("text", { x: TANK.right + 34, class: at ? "muted" : "chart-title" }));
    write(lines[0], words);
    return { lines, lead: draw("polyline", { class: "tank-lead" }) };
  }

  function start({ picture, own, change }) {
    svg = draw("svg", { role: "img", viewBox: `0 0 ${WIDE} ${HIGH}`, class: "tank-picture" });
    set(users.pattern, { id: `${own}-users` }).append(users.line);
    set(users.rect, { fill: `url(#${own}-users)`, class: "tank-layer tank-users" });
    const walls = draw("path", { d: `M${TANK.left - 5} ${TANK.rim}h5V${TANK.floor}H${TANK.right}V${TANK.rim}h5`, class: "tank-walls" });
    const axis = draw("g");
    for (const value of ticks(0, data.capacity / GIB, "linear", 5)) {
      const at = y(value * GIB);
      axis.append(draw("line", { x1: TANK.left - 22, x2: TANK.left - 17, y1: at, y2: at, class: "chart-axis" }));
      const text = draw("text", { x: TANK.left - 26, y: at + 4.5, "text-anchor": "end", class: "muted" });
      write(text, shown(value));
      axis.append(text);
    }
    const name = draw("text", { x: (TANK.left + TANK.right) / 2, y: HIGH - 8, "text-anchor": "middle", class: "chart-title" });
    write(name, `${data.device.replace(/^\w+ /, "")}: ${gib(data.capacity)}`);
    const labels = [...layers.map(({ label }) => label), free];
    svg.append(draw("defs", {}, users.pattern), spill.over, draw("rect", { x: TANK.left, y: TANK.rim, width: TANK.right - TANK.left, height: TANK.floor - TANK.rim, class: "tank-inside" }), ...layers.map(({ rect }) => rect), users.rect, walls, spill.puddle, axis, name,
      ...labels.flatMap(({ lines, lead }) => [lead, ...lines]), guess.line, guess.text, refused, beyond);
    picture.append(make("div", { class: "tank" }, svg, make("div", {}, rates(), ...(data.measured.length ? [measured(change)] : []))));
  }

  function rates() {
    const head = Object.entries(COLUMNS).map(([column, words]) => make("th", { scope: "col", class: `tank-${column}` }, words));
    const rows = RATES.map(({ name, words }) => {
      cells[name] = Object.fromEntries(Object.keys(COLUMNS).map((column) => [column, make("td", { class: `tank-${column}` })]));
      return make("tr", {}, make("th", { scope: "row" }, words), ...Object.values(cells[name]));
    });
    const table = make("table", { class: "tank-rates" }, make("thead", {}, make("tr", {}, make("td"), ...head)), make("tbody", {}, ...rows));
    const about = "The limit is all arithmetic at the peak, or weights and cache once through memory, whichever takes longer. A roofline adds activations, so it is a little slower.";
    return make("div", {}, table, make("p", { class: "tank-about muted" }, about));
  }

  /** Return buttons that set what was measured. */
  function measured(change) {
    const [{ words, prompt_tokens: prompt }] = data.measured;
    const starts = Object.fromEntries(data.choices.map(({ name, start }) => [name, start]));
    const list = make("div", { class: "tank-runs", role: "group", "aria-label": "Measured services" });
    for (const each of data.measured) {
      const button = make("button", { type: "button", class: "live-button" }, shown(each.batch_size));
      set(button, { "aria-label": people(each.batch_size), "aria-pressed": "false" });
      button.addEventListener("click", () => {
        const { batch_size, prompt_tokens, output_tokens } = each;
        change({ ...starts, batch_size, prompt_tokens, output_tokens });
      });
      runs.set(each, button);
      list.append(button);
    }
    return make("div", {}, make("p", { class: "tank-about" }, `Measured in ${words}, with prompts of about ${shown(prompt)} tokens. Users:`), list);
  }

  /** Put labels beside the layers that they name, one below the other. */
  function place(labels) {
    let floor = TANK.floor + LINE / 2;
    for (const each of labels) {
      floor = Math.min(floor, each.middle + (each.count * LINE) / 2) - each.count * LINE;
      each.top = floor;
    }
    let ceiling = TANK.rim - LINE;
    for (const { lines, lead, middle, top, count } of labels.toReversed()) {
      const from = Math.max(ceiling, top);
      ceiling = from + count * LINE + 2;
      lines.forEach((line, at) => set(line, { y: from + LINE * (at + 0.75), display: at < count ? "" : "none" }));
      const at = from + LINE / 2;
      set(lead, { points: `${TANK.right + 4},${middle} ${TANK.right + 16},${middle} ${TANK.right + 22},${at} ${TANK.right + 30},${at}`, display: "" });
    }
  }

  function hide({ lines, lead }) {
    for (const each of [...lines, lead]) set(each, { display: "none" });
  }

  /** Fill the tank up to its rim. */
  function fill(found, state) {
    let below = 0;
    const labels = [];
    let crossing;
    for (const { name, tone, rect, label } of layers) {
      const top = below + found[name];
      const [from, to] = [below, top].map((each) => Math.min(each, data.capacity));
      set(rect, { y: y(to), height: scale * (to - from) });
      if (top > data.capacity && below <= data.capacity) crossing = tone;
      write(label.lines[1], gib(found[name]));
      if (name === "cache_memory") {
        const each = found[name] / state.batch_size;
        write(label.lines[2], `${shown(state.batch_size)} × ${each < GIB ? `${shown(each / 2 ** 20)}\u00a0MiB` : gib(each)}`);
        const high = scale * each;
        set(users.pattern, { y: y(below) % high, height: high });
        set(users.rect, { y: y(to), height: scale * (to - from), opacity: high > 3 ? 1 : 0 });
      }
      labels.push({ ...label, middle: y((from + to) / 2), count: name === "cache_memory" ? 3 : 2 });
      below = top;
    }
    if (found.memory_free > 0) {
      write(free.lines[1], gib(found.memory_free));
      labels.push({ ...free, middle: y(below + found.memory_free / 2), count: 2 });
    } else hide(free);
    place(labels);
    overflow(found, state, crossing);
    mark(found);
  }

  /** Let what finds no room run over, and say so. */
  function overflow(found, state, tone) {
    const over = Math.max(0, -found.memory_free);
    for (const each of Object.values(spill)) set(each, { display: over ? "" : "none" });
    write(refused, over ? `${people(state.batch_size)}: ${data.answer.refusals.does_not_fit}` : "");
    write(beyond, over ? `${gib(over)} too much` : "");
    if (!over) return;
    const thick = 5 + Math.min(6, (12 * over) / data.capacity);
    const high = 6 + Math.min(16, (32 * over) / data.capacity);
    const [left, right] = [TANK.left - thick, TANK.right + thick];
    set(spill.over, { class: tone ?? "chart-c", d: `M${left} ${TANK.floor + 12}V${TANK.rim}Q${left} ${TANK.rim - high} ${left + 26} ${TANK.rim - high}H${right - 26}Q${right} ${TANK.rim - high} ${right} ${TANK.rim}V${TANK.floor + 12}Z` });
    set(spill.puddle, { class: tone ?? "chart-c", rx: (right - left) / 2 + Math.min(40, 8 + (60 * over) / data.capacity) });
  }

  /** Mark how high the reader's own number of users would fill it. */
  function mark(found) {
    const own = guess.users;
    const seen = own > 0 && found.cache_memory > 0;
    for (const each of Object.values({ line: guess.line, text: guess.text })) set(each, { display: seen ? "" : "none" });
    if (!seen) return;
    const level = found.reserve + found.weight_memory + found.activation_memory + (own * found.cache_memory) / found.batch;
    const at = Math.max(TANK.rim - 22, y(level));
    set(guess.line, { y1: at, y2: at });
    set(guess.text, { y: found.memory_free < 0 ? at + 16 : at - 4 }); // what is too much stands above
    write(guess.text, `your guess: ${shown(own)}${level > data.capacity * 1.08 ? " ↑" : ""}`);
  }

  function say(state) {
    const found = now(state);
    const served = `${people(state.batch_size)} with ${shown(state.prompt_tokens + state.output_tokens)} tokens each`;
    if (found.memory_free === undefined) return `${served}: ${data.answer.refusals[found.refusal]}.`;
    const most = found.largest_batch ? `At most ${people(found.largest_batch)} fit.` : "Not even one fits.";
    const verb = state.batch_size === 1 ? "s" : "";
    if (found.refusal) return `${served} ${state.batch_size === 1 ? "does" : "do"} not fit: ${gib(-found.memory_free)} too much. ${most}`;
    const time = RATES[0].form;
    const band = found.band ? ` (eight in ten runs: ${found.band.map(time).join(" to ")})` : "";
    const run = found.measured ? ` Measured: ${shown(found.measured.output_throughput, 4)} tokens a second.` : "";
    return `${served} fit${verb}: ${gib(found.memory_free)} stay free. ${most} A token takes ${time(found.time_per_output_token)}${band}.${run}`;
  }

  live(element, data, {
    start,
    say,
    draw(state, parts, said) {
      const found = now(state);
      set(svg, { "aria-label": said });
      guess.users = parts.guess;
      if (found.memory_free !== undefined) fill({ ...found, batch: state.batch_size }, state);
      element.classList.toggle("tank-untested", !found.measured);
      for (const { name, form = shown } of RATES) {
        for (const [column, cell] of Object.entries(cells[name])) {
          const value = found[column]?.[name];
          write(cell, value === undefined ? "–" : form(value));
        }
      }
      for (const [run, button] of runs) set(button, { "aria-pressed": found.measured?.output_throughput === run.rate });
    },
  });
}
