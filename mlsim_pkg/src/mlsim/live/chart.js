// Axes, lines and points of a chart in SVG, in the pixels of the page: letters keep their size.
import { draw, set, shown, write } from "./live.js";

/** Return numbers evenly apart, or decades and their halves, that label an axis well. */
export function ticks(low, high, scale, most) {
  if (scale === "log") {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
      for (const part of [1, 2, 5]) found.push(part * 10 ** power);
    }
    const inside = found.filter((each) => each >= low * 0.999 && each <= high * 1.001);
    if (inside.length <= most) return inside;
    const decades = inside.filter((each) => Math.abs(Math.log10(each) - Math.round(Math.log10(each))) < 1e-9);
    const every = Math.ceil(decades.length / most);
    return decades.filter((_, at) => at % every === 0);
  }
  const rough = (high - low) / most;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * size).find((each) => each >= rough);
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.floor(high / step + 1e-9) - first + 1 }, (_, at) => Number(((first + at) * step).toPrecision(12)));
}

/** Return a function from a range of numbers to one of pixels. */
function scaled({ low, high, scale }, from, to) {
  if (scale === "log") return (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
  return (value) => from + ((to - from) * (value - low)) / (high - low);
}

/**
 * Draw a group anew, with the elements that it has: new ones would have the whole page styled anew.
 * `drawn` is given a function that puts an element, by its tag, attributes and text, and returns it.
 */
export function redraw(group, drawn) {
  const pool = (group.pool ??= {});
  const used = {};
  drawn((tag, attributes, text) => {
    const place = (used[tag] = (used[tag] ?? -1) + 1);
    const made = ((pool[tag] ??= [])[place] ??= group.appendChild(draw(tag)));
    for (const name of made.getAttributeNames()) if (!(name in attributes)) made.removeAttribute(name);
    if (text !== undefined) write(made, text);
    return set(made, attributes);
  });
  for (const [tag, all] of Object.entries(pool)) {
    for (const each of all.slice((used[tag] ?? -1) + 1)) set(each, { display: "none" });
  }
}

/**
 * Draw the frame of a chart into a group; return how numbers become pixels.
 * `box` is { left, top, width, height } of the inside; `x` and `y` are { low, high, scale, label }.
 */
export function frame(group, box, x, y) {
  const [right, bottom] = [box.left + box.width, box.top + box.height];
  const across = scaled(x, box.left, right);
  const up = scaled(y, bottom, box.top);
  redraw(group, (put) => {
    for (const value of ticks(y.low, y.high, y.scale, Math.max(2, Math.floor(box.height / 34)))) {
      const at = up(value);
      put("line", { x1: box.left, x2: right, y1: at, y2: at, class: "chart-grid" });
      put("text", { x: box.left - 7, y: at + 4.5, "text-anchor": "end", class: "muted" }, shown(value));
    }
    for (const value of ticks(x.low, x.high, x.scale, Math.max(2, Math.floor(box.width / 48)))) {
      const at = across(value);
      put("line", { x1: at, x2: at, y1: bottom, y2: bottom + 4, class: "chart-axis" });
      put("text", { x: at, y: bottom + 18, "text-anchor": "middle", class: "muted" }, shown(value));
    }
    put("line", { x1: box.left, x2: right, y1: bottom, y2: bottom, class: "chart-axis" });
    put("text", { x: right, y: bottom + 36, "text-anchor": "end", class: "muted" }, x.label);
    put("text", { x: box.left - 34, y: box.top - 12, class: "chart-title" }, y.label);
  });
  return { across, up, right, bottom };
}

/** Return the path of a line through points [x, y]; it ends where one is beyond the chart. */
export function path(points, { across, up }, highest = Infinity) {
  const parts = [];
  for (const [at, [x, y]] of points.entries()) {
    if (y > highest) {
      const before = points[at - 1];
      if (before) {
        const part = (highest - before[1]) / (y - before[1]);
        parts.push([before[0] + part * (x - before[0]), highest]);
      }
      break;
    }
    parts.push([x, y]);
  }
  return parts.map(([x, y], at) => `${at ? "L" : "M"}${across(x).toFixed(1)} ${up(y).toFixed(1)}`).join("");
}

/** Return the value of a line through points [x, y] at a place between them, null elsewhere. */
export function between(points, x) {
  const after = points.findIndex((each) => each[0] >= x);
  if (after < 0) return null;
  const [end, start] = [points[after], points[Math.max(0, after - 1)]];
  if (end[0] === x) return end[1];
  if (after === 0) return null;
  return start[1] + ((end[1] - start[1]) * (x - start[0])) / (end[0] - start[0]);
}
