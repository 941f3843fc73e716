// A board of layouts: what a GPU keeps, where a step goes, and how the GPUs are shared out. Readers look for the
// fastest layout that fits.
import { draw, live, make, set, shown, write } from "./live.js";
import { redraw } from "./chart.js";

const GIB = 2 ** 30;
const MEMORY = [["Weights", "chart-a"], ["Gradients", "chart-b"], ["Optimizer", "chart-d"], ["Activations", "chart-c"]];
const TIMES = [["Forward and backward", "chart-a"], ["Recomputation", "chart-b"], ["Within a stage", "chart-c"], ["Bubble", "board-idle"], ["Between stages and copies", "chart-d"]];
const HIGH = 34; // of a bar
const GRID = { wide: 150, high: 132 };
const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);

/** Return what a layout keeps and takes, or why there is none. */
export function known(data, state) {
  const found = data.layouts[data.choices.map(({ name }) => state[name]).join(" ")];
  if (typeof found === "string") return { refused: found };
  const [kept, step] = [sum(found.memory), sum(found.times)];
  return { ...found, kept, step, fits: kept <= data.usable, slower: step / data.best };
}

/** Draw into an element, and let readers choose. */
export function mount(element, data) {
  const bars = [bar(MEMORY, "What a GPU keeps"), bar(TIMES, "Where a step goes")];
  const shape = { svg: draw("svg", { class: "board-shape", "aria-hidden": "true", viewBox: `0 0 ${GRID.wide} ${GRID.high}`, width: GRID.wide, height: GRID.high }), words: [0, 1, 2].map(() => make("p")) };
  let fastest = Infinity; // that this reader found

  /** Return a bar of parts with its legend. */
  function bar(parts, title) {
    const svg = draw("svg", { class: "board-bar", "aria-hidden": "true", height: HIGH + 24 });
    const values = parts.map(() => make("span"));
    const legend = make("ul", { class: "board-legend" }, ...parts.map(([words, tone], at) => make("li", {}, make("span", { class: `board-key ${tone}` }), `${words} `, values[at])));
    return { svg, values, parts, whole: make("div", {}, make("p", { class: "board-title" }, title), svg, legend) };
  }

  /** Fill a bar with parts up to the end of its scale; a line marks what matters. */
  function fill({ svg, values, parts }, numbers, { width, most, mark, words, form }) {
    const scale = width / most;
    set(svg, { viewBox: `0 0 ${width} ${HIGH + 24}` });
    redraw(svg, (put) => {
      put("rect", { x: 0, y: 0, width, height: HIGH, class: "board-room" });
      let left = 0;
      numbers.forEach((number, at) => {
        const right = Math.min(width, left + number * scale);
        if (right > left) put("rect", { x: left, y: 0, width: right - left, height: HIGH, class: `board-part ${parts[at][1]}` });
        left += number * scale;
      });
      put("line", { x1: mark * scale, x2: mark * scale, y1: 0, y2: HIGH + 5, class: "board-mark" });
      const end = mark * scale > width / 2;
      put("text", { x: mark * scale + (end ? -4 : 4), y: HIGH + 18, "text-anchor": end ? "end" : "start" }, words);
      if (left > width + 1 && !end) put("text", { x: width, y: HIGH + 18, "text-anchor": "end" }, "beyond the scale →");
      if (left > width + 1 && end) put("text", { x: 0, y: HIGH + 18 }, "beyond the scale →");
    });
    numbers.forEach((number, at) => write(values[at], form(number)));
  }

  /** Draw the pieces of one copy: stages down, GPUs that share a matrix across. */
  function cut(state, found) {
    const [across, down] = [Number(state.tensor), Number(state.stages)];
    const [wide, high] = [GRID.wide / Math.max(across, 4), GRID.high / Math.max(down, 4)];
    const gap = Math.min(3, wide / 4, high / 4);
    redraw(shape.svg, (put) => {
      for (let row = 0; row < down; row += 1) {
        for (let at = 0; at < across; at += 1) {
          put("rect", { x: at * wide, y: row * high, width: wide - gap, height: high - gap, class: row || at ? "board-piece" : "board-own" });
        }
      }
    });
    const pieces = across * down;
    const copies = data.devices / pieces;
    write(shape.words[0], pieces === 1 ? "Each GPU has a whole model." : `One copy of the model on ${shown(pieces)} GPUs: ${across} across, ${down} down. The colored piece is yours.`);
    write(shape.words[1], Number.isInteger(copies) ? `${shown(copies)} ${copies === 1 ? "copy" : "copies"}${found.refused ? "" : `, ${shown(found.micro)} micro-batch${found.micro === 1 ? "" : "es"} for each`}` : "");
    write(shape.words[2], across > data.node ? "Matrices cross nodes." : "");
  }

  const gib = (bytes) => `${shown(bytes / GIB)}\u00a0GiB`;
  const seconds = (time) => `${shown(time)}\u00a0s`;

  function say(state) {
    const found = known(data, state);
    if (found.refused) return `There is no such layout: ${found.refused}.`;
    if (!found.fits) return `Does not fit: it needs ${gib(found.kept)}, and ${gib(data.usable)} may be used. If it did, a step would take ${seconds(found.step)}.`;
    fastest = Math.min(fastest, found.step);
    const far = found.slower < 1.0005 ? "This is the fastest that the search found, too." : `That is ${shown(found.slower)} times as long as the fastest that the search found.`;
    const band = data.band ? ` (eight in ten runs: ${data.band.map((each) => seconds(each * found.step)).join(" to ")})` : "";
    return `Fits in ${gib(found.kept)}. A step takes ${seconds(found.step)}${band}. ${far} Your fastest so far: ${seconds(fastest)}.`;
  }

  live(element, data, {
    start({ picture }) {
      const about = make("div", { class: "board-about" }, make("p", { class: "board-title" }, "How the GPUs are shared out"), ...shape.words);
      picture.append(make("div", { class: "board" }, make("div", { class: "board-cut" }, shape.svg, about), ...bars.map(({ whole }) => whole)));
    },
    say,
    draw(state, { width }, _said) {
      const found = known(data, state);
      cut(state, found);
      element.classList.toggle("board-refused", Boolean(found.refused));
      element.classList.toggle("board-full", !found.refused && !found.fits);
      if (found.refused) return;
      fill(bars[0], found.memory, { width, most: 1.6 * data.usable, mark: data.usable, words: `${gib(data.usable)} may be used`, form: gib });
      fill(bars[1], found.times, { width, most: 3 * data.best, mark: data.best, words: `the search's fastest: ${seconds(data.best)}`, form: seconds });
    },
  });
}
