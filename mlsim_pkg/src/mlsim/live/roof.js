// The roof and the launch: a network's layers under the roof of a device, as the roofline has them and
// as the calibrated estimate does, which adds the launch of each kernel; below, a batch's time by cause.
import { answer } from "./answer.js";
import { frame, redraw, ticks } from "./chart.js";
import { draw, live, make, set, shown, write } from "./live.js";

const CAUSES = [
  { name: "arithmetic", tone: "chart-a", words: "Arithmetic" },
  { name: "tiles", tone: "roof-tiles", words: "Cores without work" },
  { name: "memory", tone: "chart-b", words: "Memory" },
  { name: "launches", tone: "chart-c", words: "Kernel launches" },
];
const RATES = { peak_flops: "peak", memory_bandwidth: "memory bandwidth", kernel_overhead: "launch time" };
const X = { low: 0.8, high: 4000, scale: "log", label: "Arithmetic intensity (FLOP/byte)" };
const Y = { low: 0.15, high: 2000, scale: "log", label: "TFLOP/s" };

/** Return what is known at a state: rates in FLOP/s, times in seconds, intensities in FLOP/byte. */
export function known(data, state) {
  const handles = Object.fromEntries(data.handles.map(({ name }) => [name, state[name]]));
  const found = answer(handles, {}, data.answer);
  const [peak, bandwidth] = [state.peak_flops * 1e12, state.memory_bandwidth * 1e12];
  const sum = (values) => values.reduce((total, value, at) => total + data.repeats[at] * value, 0);
  const layers = data.layers.map((name, at) => {
    const [flops, bytes, time] = [found.flops[at], found.bytes_moved[at], found.operator_time[at]];
    const [compute, memory] = [found.compute_time[at], found.memory_time[at]];
    const launch = time - Math.max(compute, memory);
    const cause = launch > Math.max(compute, memory) ? "launches" : compute < memory ? "memory" : "arithmetic";
    return { name, cause, intensity: flops / bytes, roof: Math.min(peak, (flops / bytes) * bandwidth), reached: flops / time };
  });
  const flops = sum(found.flops);
  const bytes = sum(found.bytes_moved);
  const bound = sum(found.flops.map((each, at) => Math.max(each / peak, found.bytes_moved[at] / bandwidth)));
  return {
    layers,
    network: { intensity: flops / bytes, roof: flops / bound, reached: flops / found.latency, flops, bytes },
    time: found.latency,
    causes: Object.fromEntries(CAUSES.map(({ name }) => [name, found[`causes.${name}`]])),
  };
}

/** Return a time as people read it. */
function time(seconds) {
  return seconds < 1e-3 ? `${shown(seconds * 1e6)}\u00a0µs` : `${shown(seconds * 1e3)}\u00a0ms`;
}

/** Return the next number above, of one digit or so, at which an axis ends well. */
function above(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return size * [1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((each) => each * size >= value);
}

/** Draw into an element, and let readers move it. */
export function mount(element, data) {
  const starts = Object.fromEntries(data.handles.map(({ name, start }) => [name, start]));
  const changed = (state) => Object.keys(RATES).filter((name) => state[name] !== starts[name]);
  const series = (state) => (state.measured === "on" ? data.measured : []);
  const here = (state) => series(state).flatMap(({ words, points }, number) => points.filter(([batch]) => batch === state.batch_size).map(([, seconds]) => ({ words, number, seconds })));
  const at = {}; // what a batch has at the device's own rates
  const asItIs = (batch) => (at[batch] ??= known(data, { ...starts, batch_size: batch }));
  const cells = {};
  const lanes = 1 + data.measured.length; // below the bar
  let svg, axesOf, chart, back, dots, marks, below, drawn;

  function start({ picture }) {
    svg = draw("svg", { role: "img" });
    [chart, back, marks, below] = [0, 0, 0, 0].map(() => draw("g"));
    dots = data.layers.map(() => ({ drop: draw("line", { class: "roof-drop" }), ring: draw("circle", { r: 3, class: "roof-ring" }), dot: draw("circle", { r: 5 }), title: draw("title") }));
    dots.forEach(({ dot, title }) => dot.append(title));
    svg.append(chart, back, ...dots.map(({ drop }) => drop), ...dots.map(({ ring }) => ring), ...dots.map(({ dot }) => dot), marks, below);
    const list = make("ul", { class: "roof-causes" });
    for (const { name, tone, words } of CAUSES) {
      cells[name] = make("span", { class: "roof-share" });
      list.append(make("li", {}, make("span", { class: `roof-sign ${tone}` }), `${words} `, cells[name]));
    }
    const signs = "On the roof: layers as the roofline has them. Below: the same by the estimate, in the color of what takes longest. Large: the whole network.";
    picture.append(svg, make("p", { class: "muted" }, signs), list);
  }

  /** Draw the roof that the rates make, and that of the device where it is another one. */
  function drawRoof(state) {
    const { across, up, right } = axesOf;
    const line = (peak, bandwidth) => {
      const ridge = peak / bandwidth;
      return `M${across(X.low)} ${up(X.low * bandwidth)}L${across(ridge)} ${up(peak)}L${right} ${up(peak)}`;
    };
    redraw(back, (put) => {
      const { peak_flops: peak, memory_bandwidth: bandwidth } = state;
      if (peak !== starts.peak_flops || bandwidth !== starts.memory_bandwidth) put("path", { d: line(starts.peak_flops, starts.memory_bandwidth), class: "roof-before" });
      put("path", { d: line(peak, bandwidth), class: "roof-line" });
      put("text", { x: right, y: up(peak) - 8, "text-anchor": "end" }, `${shown(peak, 4)} TFLOP/s`);
      const from = [across(X.low), up(X.low * bandwidth)];
      const angle = (Math.atan2(up(10 * bandwidth) - up(bandwidth), across(10) - across(1)) * 180) / Math.PI;
      put("text", { transform: `translate(${from[0]} ${from[1]}) rotate(${angle})`, x: 12, y: -8 }, `${shown(bandwidth, 4)} TB/s`);
    });
  }

  /** Put each layer where the roofline and the estimate have it. */
  function drawLayers(now) {
    const { across, up } = axesOf;
    const y = (rate) => up(Math.max(Y.low, rate / 1e12));
    now.layers.forEach(({ name, cause, intensity, roof, reached }, number) => {
      const { drop, ring, dot, title } = dots[number];
      for (const each of [drop, ring, dot]) set(each, { display: intensity > 0 ? "" : "none" });
      if (!(intensity > 0)) return;
      const x = across(Math.min(X.high, Math.max(X.low, intensity)));
      set(drop, { x1: x, x2: x, y1: y(roof), y2: y(reached) });
      set(ring, { cx: x, cy: y(roof) });
      set(dot, { class: `roof-dot ${CAUSES.find((each) => each.name === cause).tone}`, cx: x, cy: y(reached) });
      write(title, `${name}: ${shown(intensity)} FLOP/byte, ${shown(reached / 1e12)} TFLOP/s`);
    });
  }

  /** Mark the whole network, and what was measured of it. */
  function drawMarks(state, now) {
    const { across, up } = axesOf;
    redraw(marks, (put) => {
      const { intensity, roof, reached } = now.network;
      const x = across(intensity);
      put("line", { x1: x, x2: x, y1: up(roof / 1e12), y2: up(reached / 1e12), class: "roof-whole" });
      put("circle", { cx: x, cy: up(roof / 1e12), r: 6, class: "roof-whole roof-open" });
      put("circle", { cx: x, cy: up(reached / 1e12), r: 8, class: "roof-network" });
      for (const [number, { points }] of series(state).entries()) {
        for (const [batch, seconds] of points) {
          const { flops, intensity: place } = asItIs(batch).network;
          put("path", { d: mark(number, across(place), up(flops / seconds / 1e12), batch === state.batch_size ? 7 : 4.5), class: `roof-measured${batch === state.batch_size ? " roof-here" : ""}` });
        }
      }
    });
  }

  /** Return the outline of a mark, of another form for each series. */
  function mark(number, x, y, size) {
    if (number % 2) return `M${x - size} ${y + size * 0.8}L${x + size} ${y + size * 0.8}L${x} ${y - size}Z`;
    return `M${x - size} ${y}L${x} ${y - size}L${x + size} ${y}L${x} ${y + size}Z`;
  }

  /** Draw the time of a batch by its causes, with the band, the device as it is, or what was measured. */
  function drawTime(state, now, box, top) {
    redraw(below, (put) => {
      const recorded = data.recorded[state.batch_size];
      const moved = changed(state).length > 0;
      const measured = here(state);
      const end = above(Math.max(now.time, 2 * recorded.time, ...measured.map(({ seconds }) => seconds)) * 1.02);
      const scale = end < 1e-3 ? 1e6 : 1e3;
      const place = (seconds) => box.left + (box.width * seconds) / end;
      put("text", { x: box.left - 34, y: top - 10, class: "chart-title" }, `Time of a batch of ${state.batch_size} (${scale === 1e6 ? "µs" : "ms"})`);
      let from = 0;
      for (const { name, tone } of CAUSES) {
        const part = now.causes[name] * now.time;
        put("rect", { x: place(from), y: top, width: Math.max(0, place(from + part) - place(from)), height: 28, class: `roof-part ${tone}` });
        from += part;
      }
      let y = top + 42;
      const row = (left, right, words, drawIt) => {
        drawIt(y);
        const room = box.left + box.width - place(right) > 10 + 6.6 * words.length;
        put("text", { x: room ? place(right) + 10 : place(left) - 10, y: y + 4.5, "text-anchor": room ? "start" : "end", class: "muted" }, words);
        y += 20;
      };
      if (moved) row(0, recorded.time, "the device as it is", (line) => put("rect", { x: box.left, y: line - 4, width: place(recorded.time) - box.left, height: 8, rx: 2, class: "roof-as-is" }));
      else if (recorded.low) row(recorded.low, recorded.high, "band: 8 of 10 runs", (line) => put("path", { d: `M${place(recorded.low)} ${line - 5}v10m0 -5H${place(recorded.high)}m0 -5v10`, class: "roof-band" }));
      for (const { words, number, seconds } of measured) row(seconds, seconds, words, (line) => put("path", { d: mark(number, place(seconds), line, 6), class: "roof-measured roof-here" }));
      const base = top + 36 + 20 * lanes;
      put("line", { x1: box.left, x2: box.left + box.width, y1: base, y2: base, class: "chart-axis" });
      for (const value of ticks(0, end * scale, "linear", 5)) {
        const x = place(value / scale);
        put("line", { x1: x, x2: x, y1: base, y2: base + 4, class: "chart-axis" });
        put("text", { x, y: base + 18, "text-anchor": "middle", class: "muted" }, shown(value));
      }
    });
  }

  function say(state) {
    const now = known(data, state);
    const recorded = data.recorded[state.batch_size];
    const [most] = [...CAUSES].sort((one, other) => now.causes[other.name] - now.causes[one.name]);
    const rate = shown(Number((state.batch_size / now.time).toPrecision(3)));
    const set_ = changed(state).map((name) => RATES[name]);
    const runs = here(state).map(({ words, seconds }) => `${time(seconds)} (${words})`);
    const others = [...new Set(series(state).flatMap(({ points }) => points.map(([batch]) => batch)))].sort((one, other) => one - other);
    const measured = runs.length ? ` Measured${set_.length ? " without your change" : ""}: ${runs.join(", ")}.` : others.length ? ` Measured were batches of ${others.join(", ")}.` : "";
    const base = `Batch ${state.batch_size}: ${time(now.time)}, ${rate} samples a second. The largest part is ${most.words.toLowerCase()}: ${shown(100 * now.causes[most.name], 2)}\u00a0%.`;
    if (!set_.length) return `${base}${recorded.low ? ` Band: ${time(recorded.low)} to ${time(recorded.high)}.` : ""}${measured}`;
    const factor = recorded.time / now.time;
    const than = factor >= 1 ? `${shown(factor)} times as fast as` : `${shown(1 / factor)} times as slow as`;
    return `${base} That is ${than} the device as it is. No band: you set the ${set_.join(" and the ")}, and no such device was tested.${measured}`;
  }

  live(element, data, {
    start,
    say,
    draw(state, parts, said) {
      const wide = parts.width;
      const box = { left: 42, top: 26, width: wide - 42 - 14, height: wide > 560 ? 300 : 250 };
      const top = box.top + box.height + 80;
      if (drawn !== wide) {
        drawn = wide;
        set(svg, { viewBox: `0 0 ${wide} ${top + 58 + 20 * lanes}` });
        svg.style.height = `${top + 58 + 20 * lanes}px`;
        axesOf = frame(chart, box, X, Y);
      }
      const now = known(data, state);
      set(svg, { "aria-label": said });
      drawRoof(state);
      drawLayers(now);
      drawMarks(state, now);
      drawTime(state, now, box, top);
      for (const { name } of CAUSES) write(cells[name], `${time(now.causes[name] * now.time)}, ${shown(100 * now.causes[name], 2)}\u00a0%`);
    },
  });
}
