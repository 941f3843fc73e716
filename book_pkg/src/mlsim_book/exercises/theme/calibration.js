// The page of a reader's guesses: how far they were, by topic and one by one.
// It fills an element of the class `calibration`, which holds what to say without guesses.

const WIDEST = Math.log(100); // the chart goes from a hundredth to a hundred times
const HANDY = 1.1; // nearer than this is as good as right

/** Guesses whose answer the reader knows, oldest first. */
function knownGuesses() {
  return Object.entries(readKept())
    .map(([place, record]) => ({ place, ...record }))
    .filter((each) => each.guess !== undefined && typeof each.title === "string")
    .sort((a, b) => String(a.at).localeCompare(String(b.at)));
}

const isKnown = (each) => Boolean(each.solved || each.revealed || each.seen);
const mean = (values) => values.reduce((sum, each) => sum + each, 0) / values.length;

/** By topic: its guesses, and the mean of their logarithms, optimistic above zero where that has a sense. */
function byTopic(records) {
  const topics = new Map();
  records.filter((each) => isKnown(each) && ratioOf(each) !== null).forEach((each) => {
    const topic = each.topic || "other";
    topics.set(topic, [...(topics.get(topic) ?? []), each]);
  });
  return [...topics].map(([topic, own]) => {
    const log = (each) => Math.log(ratioOf(each));
    const valued = own.filter((each) => each.better);
    const bias = valued.length
      ? mean(valued.map((each) => (each.better === "higher" ? log(each) : -log(each))))
      : mean(own.map(log));
    const words = valued.length ? ["optimistic", "pessimistic"] : ["too high", "too low"];
    return { topic, own, bias, words, spread: mean(own.map((each) => Math.abs(log(each)))) };
  });
}

/** What a topic's guesses come to, "You run 2.0 times optimistic on decode.", and how wide they miss. */
function verdictOn({ topic, own, bias, words, spread }) {
  const size = Math.exp(Math.abs(bias));
  const way = words[bias > 0 ? 0 : 1];
  const typical = Math.exp(spread);
  const off = typical < HANDY ? "" : ` A typical guess is ${factor(typical)} off.`;
  if (own.length === 1) return [size < HANDY ? `Your guess on ${topic} was good.` : `Your one guess on ${topic} was ${factor(size)} ${way}.`, ""];
  if (size < HANDY) return [`On ${topic} you are right on average.`, off];
  return [`You run ${factor(size)} ${way} on ${topic}.`, off];
}

/** Where a guess lies on the chart, by the logarithm of guess over answer. */
const at = (log) => `${50 + 48.5 * Math.max(-1, Math.min(1, log / WIDEST))}%`;

/** A line for a topic: a dot for each guess, the answer in the middle. */
function drawTopic(summary) {
  const shown = summary.own.map((each) => `${each.title}: ${distance(each)}`).join("; ");
  const track = make("div", { class: "guess-track", role: "img", "aria-label": `Guesses on ${summary.topic}. ${shown}.` });
  for (const times of [0.1, 1, 10]) {
    const tick = make("span", { class: times === 1 ? "guess-tick answer" : "guess-tick" });
    tick.style.left = at(Math.log(times));
    track.append(tick);
  }
  summary.own.forEach((each) => {
    const dot = make("span", { class: "guess-dot", title: `${each.title}: ${distance(each)}` });
    dot.style.left = at(Math.log(ratioOf(each)));
    track.append(dot);
  });
  const [verdict, off] = verdictOn(summary);
  return make("li", {}, make("p", {}, make("strong", {}, verdict), off), track);
}

function scale() {
  const marks = { 0.1: "10 times too low", 1: "right", 10: "10 times too high" };
  return make("div", { class: "guess-scale", "aria-hidden": "true" }, ...Object.entries(marks).map(([times, text]) => {
    const mark = make("span", {}, text);
    mark.style.left = at(Math.log(times));
    return mark;
  }));
}

/** The guesses one by one, with the way to each question. */
function drawTable(records) {
  const head = ["Question", "Guess", "Answer", "How far"];
  const rows = records.map((each) => {
    const known = isKnown(each);
    const choice = each.guess === each.answer ? "right" : "wrong";
    const off = !known ? "" : each.kind === "number" ? distance(each) : choice;
    return make("tr", { class: each.kind === "number" ? "n" : "" },
      make("th", { scope: "row" }, make("a", { href: new URL(each.place, ROOT).href }, each.title), make("span", {}, each.chapter ?? "")),
      make("td", {}, each.guessText ?? ""), make("td", {}, known ? each.answerText ?? "" : "not seen yet"), make("td", {}, off));
  });
  return make("div", { class: "table-scroll" }, make("table", { class: "table" },
    make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...rows)));
}

/** The guesses as a table for other programs. */
function asCsv(records) {
  const names = ["place", "title", "chapter", "topic", "kind", "guess", "answer", "unit", "better", "ratio", "at"];
  const cell = (value) => {
    const text = String(value ?? "");
    return /[",\n]|^[=+@]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const rows = records.map((each) => {
    const known = { ...each, ratio: ratioOf(each) ?? "", answer: each.answer };
    if (!isKnown(each)) known.answer = known.ratio = "";
    return names.map((name) => cell(known[name]));
  });
  return [names, ...rows].map((row) => `${row.join(",")}\r\n`).join("");
}

function drawTools(records, redraw) {
  const button = (text) => make("button", { type: "button", class: "exercise-button" }, text);
  const [take, remove, back] = [button("Download as CSV"), button("Delete all"), button("Keep them")];
  take.addEventListener("click", () => {
    const url = URL.createObjectURL(new Blob([asCsv(records)], { type: "text/csv" }));
    make("a", { href: url, download: "guesses.csv" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  });
  back.hidden = true;
  const asking = (on) => {
    back.hidden = !on;
    remove.textContent = on ? "Yes, delete all guesses and answers" : "Delete all";
  };
  remove.addEventListener("click", () => {
    if (back.hidden) return asking(true);
    writeKept({});
    redraw();
  });
  back.addEventListener("click", () => {
    asking(false);
    remove.focus();
  });
  return make("div", { class: "exercise-tools" }, take, remove, back);
}

function startCalibration(box) {
  const empty = make("div", {}, ...box.childNodes);
  const drawn = make("div", { class: "guesses", tabIndex: -1 });
  const said = make("p", { role: "status", class: "visually-hidden" });
  box.append(empty, drawn, said);
  const redraw = (words = "") => {
    const records = knownGuesses();
    empty.hidden = records.length > 0;
    drawn.replaceChildren();
    said.textContent = words;
    if (!records.length) return;
    const topics = byTopic(records);
    const choices = records.filter((each) => each.kind !== "number" && isKnown(each));
    const right = choices.filter((each) => each.guess === each.answer).length;
    if (topics.length) drawn.append(make("ul", { class: "guess-topics" }, ...topics.map(drawTopic)), scale());
    else drawn.append(make("p", {}, "Check an answer, see a solution, or read on to where a guess is settled: then this page says how far your guess was."));
    if (choices.length) drawn.append(make("p", {}, `Choices and orders: ${right} of ${choices.length} right at the first answer.`));
    drawn.append(drawTable(records), drawTools(records, () => {
      redraw("All guesses are deleted.");
      drawn.focus();
    }));
    markScrollBoxes(drawn);
  };
  redraw();
  addEventListener("storage", () => redraw()); // another tab has guessed
  addEventListener("pageshow", (event) => event.persisted && redraw()); // or the page before
}

all(".calibration").forEach(startCalibration);
