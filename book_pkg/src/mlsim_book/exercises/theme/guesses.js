// What a reader guessed and answered: kept in this browser only, by the place of the exercise.
const ROOT = new URL(document.body.dataset.base || "./", location.href);
const PAGE = location.href.split(/[?#]/)[0].slice(ROOT.href.length) || "index.html";
const SHELF = `exercises ${ROOT.pathname}`; // several books may share an address
let unkept = null; // what was to be kept, where storage is refused

/** All that is kept, by place; nothing where it is damaged. */
function readKept() {
  if (unkept) return unkept;
  try {
    const found = Object.entries(JSON.parse(kept(SHELF)) ?? {});
    return Object.fromEntries(found.filter(([, each]) => each && typeof each === "object"));
  } catch {
    return {};
  }
}

function writeKept(records) {
  try {
    localStorage.setItem(SHELF, JSON.stringify(records));
  } catch {
    unkept = records; // until the page is left
  }
}

/** Change what is kept of one place; nothing takes it away. */
function keepRecord(place, change) {
  const { [place]: old, ...others } = readKept();
  writeKept(change ? { ...others, [place]: { ...old, ...change } } : others);
}

/** Make an element with attributes and children. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "string") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** Write a number to three digits, a whole one in full. */
function digits(value) {
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e15)) return value.toExponential(2);
  if (Number.isInteger(value)) return value.toLocaleString("en");
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumSignificantDigits: 3 });
}

const withUnit = (value, unit) => `${digits(value)} ${unit ?? ""}`.trim();

/** A factor above one in words: "2.1 times", "7 %" more. */
function factor(times) {
  if (times < 1.095) return `${Math.max(1, Math.round((times - 1) * 100))} %`;
  return `${times < 9.95 ? times.toFixed(1) : digits(Number(times.toPrecision(2)))} times`;
}

/** Guess over answer, where that says something. */
function ratioOf({ kind, guess, answer }) {
  const ratio = kind === "number" ? guess / answer : NaN;
  return ratio > 0 && Number.isFinite(ratio) ? ratio : null;
}

/** How far a guess was: "2.1 times too low", "right", or "" where nothing can be said. */
function distance(record) {
  const ratio = ratioOf(record);
  if (ratio === null) return record.kind === "number" && record.guess === record.answer ? "right" : "";
  if (Math.abs(ratio - 1) <= (record.tolerance ?? 0)) return "right";
  return ratio > 1 ? `${factor(ratio)} too high` : `${factor(1 / ratio)} too low`;
}
