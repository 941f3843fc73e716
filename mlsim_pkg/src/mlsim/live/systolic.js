// The systolic array as a live figure: cells, what streams past them, and how many work in each cycle.
import { redraw } from "./chart.js";
import { draw, live, set, shown, write } from "./live.js";
import { multiply } from "./systolic_array.js";

const LETTERS = { weights: "wx ", inputs: "xw ", outputs: "yxw" }; // at rest, from the west, from the north
const NAMES = { weights: ["inputs", "", "sums"], inputs: ["weights", "", "sums"], outputs: ["inputs", "weights", "sums"] };
const WAITING = 2; // elements that are seen in front of a row or a column
const WORDS = {
  load: "the tile shifts in from the top",
  compute: "numbers stream through",
  unload: "the finished sums shift out at the bottom",
};

/** Return the matrices in which so many vectors stream past what rests. */
export function matrices(data, rest, vectors) {
  const side = data.inputs.length;
  const cut = (matrix, rows, columns) =>
    Array.from({ length: rows }, (_, r) => Array.from({ length: columns }, (_, c) => matrix[r % side][c % side]));
  const inputs = cut(data.inputs, rest === "weights" ? vectors : side, rest === "outputs" ? vectors : side);
  const weights = cut(data.weights, rest === "outputs" ? vectors : side, rest === "inputs" ? vectors : side);
  return [inputs, weights];
}

/** Return where each element is in a cycle: a name, a row and a column of cells, and its kind. */
export function places(rest, side, vectors, cycle, product) {
  const found = [];
  const [resting, west, north] = LETTERS[rest];
  const name = (letter, row, column) => `${letter}${row + 1}${Math.max(row, column) > 8 ? "," : ""}${column + 1}`;
  for (let r = 0; r < side; r += 1) {
    for (let c = 0; c < side; c += 1) {
      if (rest === "outputs") {
        const out = Math.max(0, cycle - (vectors + 2 * side - 2));
        found.push({ kind: "rests", text: name(resting, r, c), row: r + out, column: c });
      } else {
        const text = rest === "inputs" ? name(resting, c, r) : name(resting, r, c);
        found.push({ kind: "rests", text, row: r - Math.max(0, side - cycle), column: c });
      }
    }
  }
  const now = rest === "outputs" ? cycle - 1 : Math.max(cycle, side) - side - 1;
  // Vectors that are far from the cells are not seen.
  const last = Math.min(vectors - 1, now + WAITING + 1);
  for (let v = Math.max(0, now - 4 * side); v <= last; v += 1) {
    for (let r = 0; r < side; r += 1) {
      // Outputs: of row r its element v. Else: of vector v its element r.
      const text = rest === "weights" ? name(west, v, r) : name(west, r, v);
      found.push({ kind: "west", text, row: r, column: now - v - r });
      if (rest === "outputs") found.push({ kind: "north", text: name(north, v, r), row: now - v - r, column: r });
      else {
        const done = now - v - (side - 1) - r; // cycles since the sum of column r left
        const sum = rest === "inputs" ? ["y", r, v] : ["y", v, r];
        const value = product[sum[1]][sum[2]];
        if (done >= 0) found.push({ kind: "out", text: name(...sum), value, row: side + done, column: r });
      }
    }
  }
  return found;
}

/** Return the run of a state, kept until another is asked for. */
function runOf(data, state, kept) {
  const key = `${state.rest} ${state.vectors}`;
  if (kept.key !== key) {
    const side = data.inputs.length;
    kept.key = key;
    kept.run = multiply(...matrices(data, state.rest, state.vectors), side, side, state.rest);
  }
  return kept.run;
}

/** Draw into an element, and let readers move it. */
export function mount(element, data) {
  const side = data.inputs.length;
  const kept = {};
  const cells = [];
  let array, tokens, names, bars, marks, here, title;
  const known = new Map(); // the tokens that are shown, by kind and text
  const spare = { rests: [], west: [], north: [], out: [] };

  const cyclesOf = (state) => runOf(data, state, kept).cycles;

  function start(parts) {
    array = draw("svg", { role: "img", class: "systolic" });
    const clip = draw("clipPath", { id: `${parts.own}-clip` }, draw("rect"));
    const within = draw("g", { "clip-path": `url(#${parts.own}-clip)` });
    for (let at = 0; at < side * side; at += 1) {
      const box = draw("rect", { rx: 6, class: "systolic-cell" });
      const sum = draw("text", { class: "systolic-sum", "text-anchor": "end" });
      cells.push({ box, sum });
      within.append(box, sum);
    }
    tokens = draw("g");
    within.append(tokens);
    names = ["west", "north", "out"].map((side_) => draw("text", { class: `muted systolic-name-${side_}` }));
    array.append(clip, within, ...names);
    bars = draw("svg", { class: "systolic-bars", "aria-hidden": "true" });
    marks = draw("g");
    title = draw("text", { class: "muted", x: 4, y: 12 });
    title.textContent = "Cells that multiply, cycle by cycle";
    here = [draw("rect", { class: "systolic-room systolic-here", rx: 3 }), draw("rect", { class: "systolic-work systolic-here", rx: 3 }), draw("text", { "text-anchor": "middle" })];
    bars.append(title, marks, ...here);
    parts.picture.append(array, bars);
  }

  function drawArray(state, parts, run) {
    const size = Math.min(76, Math.floor(parts.width / (side + WAITING + 1)));
    const left = Math.max(WAITING * size, (parts.width - (side + WAITING - 1) * size) / 2);
    const top = WAITING * size * 0.5 + 4;
    const height = top + (side + 1) * size;
    set(array, { "aria-label": sayWhere(state, run) });
    array.classList.toggle("systolic-still", parts.jumped);
    if (kept.width !== parts.width) {
      set(array, { viewBox: `0 0 ${parts.width} ${height}` });
      array.style.height = `${height}px`;
      const frame = { x: left - WAITING * size, y: 0, width: (side + WAITING + 1) * size, height };
      set(array.querySelector("clipPath rect"), frame);
      cells.forEach(({ box, sum }, at) => {
        const [r, c] = [Math.floor(at / side), at % side];
        set(box, { x: left + c * size + 2, y: top + r * size + 2, width: size - 4, height: size - 4 });
        set(sum, { x: left + (c + 1) * size - 7, y: top + (r + 1) * size - (size < 66 ? 6 : 9) });
      });
    }
    const cycle = run.trace[state.cycle - 1];
    cycle.cells.flat().forEach((cell, at) => {
      const { box, sum } = cells[at];
      box.classList.toggle("systolic-busy", cell.busy);
      box.classList.toggle("systolic-full", Boolean(cell.rests) && !cell.busy);
      write(sum, cell.sum === null ? "" : shown(cell.sum));
    });
    const [west, north, out] = NAMES[state.rest];
    const words = [[west && `${west} \u2192`, left - WAITING * size + 4, top - 8], [north && `${north} \u2193`, left + 4, 12], [`${out} \u2193`, left - WAITING * size + 4, top + (side + 0.5) * size]];
    names.forEach((text, at) => {
      set(text, { x: words[at][1], y: words[at][2] });
      write(text, words[at][0]);
    });
    const shownNow = new Set();
    for (const each of places(state.rest, side, state.vectors, state.cycle, run.product)) {
      const key = `${each.kind} ${each.text}`;
      if (!known.has(key) && !visible(each, 1)) continue;
      shownNow.add(key);
      place(key, each, left, top, size);
    }
    for (const [key, token] of known) if (!shownNow.has(key)) hide(key, token);
  }

  /** Say whether an element is seen, or will be in so many cycles. */
  function visible({ kind, row, column }, soon = 0) {
    if (kind === "west") return column >= -WAITING - soon && column < side;
    if (kind === "north") return row >= -1 - soon && row < side;
    if (kind === "out") return row < side + 1;
    return row >= -1 - soon && row < side + 1;
  }

  /** Return a token of a kind: one that nobody sees, or a new one. */
  function tokenOf(kind) {
    const used = spare[kind].pop();
    if (used) return used;
    const made = draw("g", { class: `systolic-token systolic-${kind}` });
    if (kind === "west" || kind === "north") made.append(draw("rect", { y: -10, height: 20, rx: 10 }));
    made.append(draw("text", { "text-anchor": "middle", y: 4.5 }));
    tokens.append(made);
    return made;
  }

  function place(key, each, left, top, size) {
    let token = known.get(key);
    token?.classList.remove("systolic-fresh");
    if (!token) {
      token = tokenOf(each.kind);
      known.set(key, token);
      token.classList.add("systolic-fresh"); // it appears in its place, wherever it was before
      const wide = 32 + 6 * Math.max(0, each.text.length - 4);
      if (token.childElementCount === 2) set(token.firstChild, { x: -wide / 2, width: wide });
      write(token.lastChild, each.kind === "out" ? `${each.text} = ${shown(each.value)}` : each.text);
    }
    const apart = kept.two ? Math.min(18, size / 4 - 1) : 0;
    const across = { west: -apart, north: apart }[each.kind] ?? 0;
    const down = { rests: size < 66 ? 0.2 : 0.24, west: 0.55, north: 0.55, out: 0.4 }[each.kind];
    const x = left + (each.column + 0.5) * size + across;
    // What waits above the array stands closer together.
    const y = top + size * (each.row < 0 ? each.row * 0.45 + 0.15 : each.row + down);
    token.style.transform = `translate(${x}px, ${y}px)`;
    token.style.opacity = visible(each) ? 1 : 0;
  }

  /** Put a token aside. Taking it out would have the whole page styled anew. */
  function hide(key, token) {
    token.style.opacity = 0;
    known.delete(key);
    spare[key.split(" ")[0]].push(token);
  }

  /** Draw the bars of a run, which stay until another run or width; then only mark the cycle. */
  function drawBars(state, parts, run) {
    const [height, left, base, high] = [92, 4, 72, 50];
    const wide = (parts.width - 2 * left) / run.cycles;
    const gap = Math.min(4, wide / 5);
    const middle = (number) => left + (number - 0.5) * wide;
    if (kept.drawn !== run || kept.width !== parts.width) {
      kept.drawn = run;
      set(bars, { viewBox: `0 0 ${parts.width} ${height}` });
      bars.style.height = `${height}px`;
      const every = [1, 2, 5, 10, 20, 50].find((each) => each * wide > 22) ?? 100;
      kept.labels = [];
      redraw(marks, (put) => {
        for (const cycle of run.trace) {
          const part = cycle.busy / (side * side);
          const box = { x: middle(cycle.number) - (wide - gap) / 2, width: wide - gap, rx: Math.min(3, wide / 6) };
          put("rect", { ...box, y: base - high, height: high, class: "systolic-room" });
          if (part) put("rect", { ...box, y: base - high * part, height: high * part, class: "systolic-work" });
          if (cycle.number % every) continue;
          const text = put("text", { x: middle(cycle.number), y: height - 4, "text-anchor": "middle", class: "muted" }, String(cycle.number));
          kept.labels.push([cycle.number, text]);
        }
      });
    }
    const part = run.trace[state.cycle - 1].busy / (side * side);
    const box = { x: middle(state.cycle) - Math.max(wide - gap, 3) / 2, width: Math.max(wide - gap, 3) };
    set(here[0], { ...box, y: base - high, height: high });
    set(here[1], { ...box, y: base - high * part, height: high * part });
    set(here[2], { x: middle(state.cycle), y: height - 4 });
    write(here[2], String(state.cycle));
    for (const [number, text] of kept.labels) text.style.opacity = Math.abs(number - state.cycle) * wide < 22 ? 0 : 1;
  }

  function sayWhere(state, run) {
    const cycle = run.trace[state.cycle - 1];
    return `Cycle ${state.cycle} of ${run.cycles}, ${WORDS[cycle.phase]}: ${cycle.busy} of ${side * side} cells multiply.`;
  }

  live(element, data, {
    start,
    most: (name, state) => (name === "cycle" ? cyclesOf(state) : undefined),
    play: { handle: "cycle", every: 900 },
    drag: { part: () => bars, handle: "cycle", value: (x, parts, state) => Math.ceil(((x - 4) / (parts.width - 8)) * cyclesOf(state)) },
    draw(state, parts) {
      const run = runOf(data, state, kept);
      // The names and sums of another run are others.
      if (kept.shown !== run) for (const [key, token] of known) hide(key, token);
      Object.assign(kept, { shown: run, two: state.rest === "outputs" });
      drawArray(state, parts, run);
      drawBars(state, parts, run);
      kept.width = parts.width;
    },
    say(state) {
      const run = runOf(data, state, kept);
      return `${sayWhere(state, run)} Over all ${run.cycles} cycles the cells are busy ${shown(100 * run.use, 2)} % of the time.`;
    },
  });
}
