// Will it run? Any language model on any device: does it fit, how fast, for how many, at what price.
import { answer, constants } from "./answer.js";
import { each, live, make, set, show, shown, write } from "./live.js";

const GIB = 2 ** 30;
const MILLION = 1e6;
const PARTS = [
  ["weight_memory", "Weights", "run-weights"],
  ["cache_memory", "KV cache", "run-cache"],
  ["activation_memory", "Activations", "run-activations"],
  ["free", "Free", "run-free"],
  ["reserve", "Reserve", "run-reserve"],
  ["beyond", "Too much: right of the line", "run-beyond"], // in the bar, a mark
];
const SPEEDS = [
  { name: "time_to_first_token", words: "First token", of: "after all prompts are sent at once" },
  { name: "time_per_output_token", words: "Each further token", of: "for each user" },
  { words: "All users together", of: "while they are answered" },
];

/** Return where a question stands in the data: a place in each list. */
export function pairOf(state, data) {
  return {
    n: data.answer.shapes.counts.indexOf(Number(state.devices)),
    e: data.models.findIndex(([key]) => key === state.model),
    p: data.devices.findIndex(([key]) => key === state.hardware),
    w: data.weights.indexOf(state.weights),
    v: data.caches.indexOf(state.kv_cache),
  };
}

/** Return the band around a time, [low, high] in seconds; nothing faster than the bound is in it. */
export function band(name, found, bound, loans, bands) {
  const { limits, lent } = bands.results[name];
  const step = name === "time_to_first_token" ? "prefill" : "decode";
  const share = (constant) => bands.causes[constant].reduce((sum, cause) => sum + (found[`${step}.causes.${cause}`] ?? 0), 0);
  const matters = ([constant, level]) => !bands.causes[constant] || level === bands.nobody || share(constant) >= bands.tenth;
  const far = {};
  for (const [constant, level] of loans.filter(matters)) {
    const what = bands.links.includes(constant) ? "links" : "device";
    if (!(what in far) || bands.levels.indexOf(far[what]) < bands.levels.indexOf(level)) far[what] = level;
  }
  let [least, most] = limits;
  for (const [what, level] of Object.entries(far)) {
    least *= Math.min(1, lent[what][level][0] / limits[0]);
    most *= Math.max(1, lent[what][level][1] / limits[1]);
  }
  return [Math.max(found[name] / most, bound[name]), found[name] / least];
}

/** Return the answer of an estimate, in base units; of more devices than stand in one node, none. */
function answered(state, data, estimate = "calibrated") {
  const { batch_size, prompt_tokens, output_tokens } = state;
  if (state.devices > 1 && !(data.nodes[state.hardware]?.[1] >= state.devices)) return { refusal: "no_node" };
  return answer({ batch_size, prompt_tokens, output_tokens }, pairOf(state, data), data.answer, estimate);
}

/** Return all that the page says of a question, in base units. */
export function asked(state, data) {
  const pair = pairOf(state, data);
  const found = answered(state, data);
  if (found.refusal === "no_node") return found;
  const told = constants(pair, data.answer);
  if (found.refusal && found.refusal !== "does_not_fit") return { ...found, why: told.text };
  const reserve = told.memory_capacity - found.usable_memory;
  const lent = data.answer.also.filter((name) => name.startsWith("loan ") && told[name]);
  const loans = lent.map((name) => [name.slice(5), ...told[name]]);
  const all = { ...found, reserve, weights: told.weights, cache: told.cache, loans };
  if (found.refusal) return all;
  const [roofline, bound] = ["roofline", "bound"].map((each) => answered(state, data, each));
  const bands = Object.fromEntries(SPEEDS.filter(({ name }) => name).map(({ name }) => [name, band(name, found, bound, loans, data.bands)]));
  const [, , watts] = data.devices[pair.p];
  const rent = data.rents[state.hardware];
  return {
    ...all,
    roofline,
    bands,
    price: rent && ((rent[0] / 3600) * state.devices * MILLION) / found.output_throughput,
    energy: watts ? (watts * state.devices * MILLION) / found.output_throughput : undefined,
  };
}

/** Return changes to a question after which it fits, the smallest first, in words. */
export function ways(state, data) {
  const fits = (changes) => !answered({ ...state, ...changes }, data).refusal;
  const found = [];
  const more = data.answer.shapes.counts.find((count) => count > state.devices && fits({ devices: count }));
  if (more) found.push(`share it among ${more} of them`);
  const alone = asked(state, data).largest_batch;
  if (alone >= 1) found.push(`serve ${people(alone)} at once in place of ${shown(state.batch_size)}`);
  const order = { released: 0, fp8: 1, int4: 2 };
  for (const key of data.caches) if (order[key] > order[state.kv_cache] && fits({ kv_cache: key })) found.push("keep the KV cache in 8 bits");
  for (const key of data.weights) {
    if (order[key] > order[state.weights] && fits({ weights: key })) found.push(`keep the weights in ${key === "fp8" ? 8 : 4} bits`);
  }
  if (found.length) return found;
  if (fits({ batch_size: 1, weights: "int4", kv_cache: "fp8" })) return ["serve one user, with weights in 4 bits and the cache in 8"];
  for (const devices of new Set([state.devices, data.answer.shapes.counts.at(-1)])) {
    const larger = data.devices.filter(([key]) => fits({ hardware: key, devices })).map(([key, name]) => [capacity(state, key, data), name]);
    larger.sort((a, b) => a[0] - b[0]);
    if (larger.length) return [`take ${devices > 1 ? `${devices} devices` : "a device"} with more memory, such as the ${larger[0][1]}`];
  }
  return [];
}

function capacity(state, key, data) {
  return constants(pairOf({ ...state, hardware: key }, data), data.answer).memory_capacity;
}

const people = (count) => (count === 1 ? "1 user" : `${shown(count)} users`);
const gib = (bytes) => `${shown(bytes / GIB)} GiB`;

/** Return a time as people read it. */
export function time(seconds) {
  if (seconds < 1e-3) return `${shown(seconds * 1e6)} µs`;
  return seconds < 1 ? `${shown(seconds * 1e3)} ms` : `${shown(seconds)} s`;
}

/** Return the same question in Python and for the shell. */
export function code(state, data) {
  const several = state.devices > 1;
  const [hardware] = (several && data.nodes[state.hardware]) || [state.hardware];
  const python = [`    "${state.model}", "${hardware}",`];
  if (several) python.push(`    tensor_parallel=${state.devices},`);
  python.push(`    batch_size=${state.batch_size},`, `    prompt_tokens=${state.prompt_tokens}, output_tokens=${state.output_tokens},`);
  const formats = ["weights", "kv_cache"].filter((name) => state[name] !== "released");
  python.push(`    ${formats.map((name) => `${name}="${state[name]}", `).join("")}estimate="calibrated",`);
  const shell = [`mlsim serve ${state.model} ${hardware}`];
  if (several) shell.push(`  --tensor-parallel ${state.devices}`);
  shell.push(`  --batch ${state.batch_size} --prompt ${state.prompt_tokens} --output ${state.output_tokens}`);
  shell.push(`  ${formats.map((name) => `--${name.replace("_", "-")} ${state[name]} `).join("")}--estimate calibrated`);
  return {
    Python: `from mlsim import Engine\n\nservice = Engine.serve(\n${python.join("\n")}\n)\nprint(service)`,
    Shell: shell.join(" \\\n"),
  };
}

/** Return why there is no answer, in a sentence. */
function refused(found, state, data) {
  const [, model, context] = data.models.find(([key]) => key === state.model);
  if (found.refusal === "too_long") {
    return `${model} reads at most ${shown(context)} tokens, and prompt and answer are ${shown(state.prompt_tokens + state.output_tokens)}.`;
  }
  if (found.refusal === "no_node") {
    const [, name] = data.devices.find(([key]) => key === state.hardware);
    const [, most] = data.nodes[state.hardware] ?? [];
    return `No node with ${state.devices} x ${name} is on record: ${most ? `it has ${most} at most` : "only single ones are"}.`;
  }
  return (found.why ?? data.answer.refusals[found.refusal]).replaceAll("{model}", model);
}

/** Draw into an element, and let readers ask. */
export function mount(element, data) {
  const at = {};
  let last = ["", null];

  /** Return all that is known of a question: asked once for each. */
  function now(state) {
    const key = JSON.stringify(state);
    if (last[0] !== key) last = [key, asked(state, data)];
    return last[1];
  }

  function start({ picture }) {
    picture.before(element.querySelector(".live-controls"));
    const part = (name, tag = "div", ...inner) => (at[name] = make(tag, { class: `run-${name}` }, ...inner));
    part("verdict", "p");
    part("why", "div", make("p"), make("ul"));
    at.mark = make("i", { class: "run-mark" });
    part("bar", "div", ...PARTS.slice(0, -1).map(([, , kind]) => make("span", { class: kind })), at.mark);
    part("legend", "dl", ...PARTS.map(([, words, kind]) => make("div", { class: kind }, make("dt", {}, words), make("dd"))));
    part("memory", "section", heading("Memory"), at.bar, at.legend);
    part("speeds", "div", ...SPEEDS.map(card));
    part("speed", "section", heading("Speed"), at.speeds);
    part("facts", "dl");
    part("loans", "div", make("p"), make("ul"));
    part("code", "section", heading("The same question"));
    for (const name of ["Python", "Shell"]) {
      const text = make("code");
      const copy = make("button", { type: "button", class: "live-button" }, "Copy");
      set(copy, { "aria-label": `Copy the question for ${name === "Python" ? "Python" : "the shell"}` });
      copy.addEventListener("click", async () => {
        await navigator.clipboard?.writeText(text.textContent);
        copy.textContent = "Copied";
        setTimeout(() => (copy.textContent = "Copy"), 1500);
      });
      at[name] = text;
      at.code.append(make("div", { class: "run-block" }, make("div", {}, make("p", {}, name), copy), make("pre", { tabindex: "0", "aria-label": `${name} code` }, text)));
    }
    picture.append(make("div", { class: "run" }, at.verdict, at.why, at.memory, at.speed, at.facts, at.loans, at.code));
  }

  /** Return a card of a speed, with its scale if it has a band. */
  function card({ words, of, name }) {
    const parts = [make("p", { class: "run-title" }, words), make("p", { class: "run-number" }), make("p", { class: "muted" }, of)];
    if (name) parts.push(make("div", { class: "run-scale", "aria-hidden": "true" }, ...["run-band", "run-roof", "run-here"].map((kind) => make("span", { class: kind }))));
    return make("div", { class: "run-card" }, ...parts, make("p"));
  }

  function draw(state) {
    const found = now(state);
    const told = found.refusal && found.refusal !== "does_not_fit";
    set(at.verdict, { "data-fits": found.refusal ? "no" : "yes" });
    write(at.verdict, verdict(found, state));
    because(found, state);
    show(at.memory, !told);
    show(at.code, found.refusal !== "no_node");
    write(at.memory.firstChild, state.devices > 1 ? "Memory of each device" : "Memory");
    for (const each of [at.speed, at.facts, at.loans]) show(each, !found.refusal);
    const written = code(state, data);
    for (const name of Object.keys(written)) write(at[name], written[name]);
    if (told) return;
    memory(found);
    if (found.refusal) return;
    speeds(found);
    facts(found, state);
  }

  /** Say why there is no answer, and what would give one. */
  function because(found, state) {
    show(at.why, found.refusal);
    if (!found.refusal) return;
    let [words, can] = [refused(found, state, data), []];
    if (found.refusal === "does_not_fit") {
      can = ways(state, data);
      const need = `${state.devices > 1 ? "Each device" : "It"} needs ${gib(found.memory_required)}, and ${gib(found.usable_memory)} can be used.`;
      words = can.length ? `${need} It would fit if you` : `${need} No node on record holds it.`;
    }
    write(at.why.firstChild, words);
    show(at.why.lastChild, can.length);
    each(at.why.lastChild, can, () => make("li"), write);
  }

  function memory(found) {
    const free = found.memory_free;
    const sizes = { ...found, free: free > 0 && free, reserve: free >= 0 && found.reserve, beyond: free < 0 && -free };
    const total = Math.max(found.usable_memory + found.reserve, found.memory_required);
    for (const [place, [name]] of PARTS.entries()) {
      const bytes = sizes[name];
      const [piece, entry] = [at.bar.children[place], at.legend.children[place]];
      for (const each of [piece, entry]) show(each, bytes !== false);
      if (bytes === false) continue;
      write(entry.lastChild, gib(bytes));
      if (piece !== at.mark) style(piece, { flexGrow: Number((bytes / total).toPrecision(5)) });
    }
    style(at.mark, { left: percent(found.usable_memory / total) });
  }

  function speeds(found) {
    for (const [place, { name }] of SPEEDS.entries()) {
      const [, number, , scale, words] = at.speeds.children[place].children;
      if (!name) {
        write(number, `${shown(found.decode_throughput)} tokens/s`);
        write(scale, `Prompts included: ${shown(found.output_throughput)} tokens/s.`); // it has no scale
        continue;
      }
      const [low, high] = found.bands[name];
      const roof = found.roofline[name];
      const part = (seconds) => percent(seconds / (1.12 * Math.max(high, roof)));
      style(scale.children[0], { left: part(low), width: part(high - low) });
      style(scale.children[1], { left: part(roof) });
      style(scale.children[2], { left: part(found[name]) });
      write(number, time(found[name]));
      write(words, `80 % band: ${time(low)} to ${time(high)}. Roofline: ${time(roof)}.`);
    }
  }

  function facts(found, state) {
    const rent = data.rents[state.hardware];
    const [, , watts] = data.devices.find(([key]) => key === state.hardware);
    const of = state.devices > 1 ? " for each device" : "";
    const rows = [["Users that fit", people(found.largest_batch), "with such prompts and answers"]];
    rows.push(["Formats", `${found.weights}, cache ${found.cache}`, "of weights and of the KV cache"]);
    rows.push(["A million tokens of answers", rent ? `${shown(found.price)} USD` : "no rent on record",
      rent ? `at ${shown(rent[0])} USD/h${of} (${rent[1]}, ${rent[2]}), always this busy` : "of this device"]);
    rows.push(["Energy for them", watts ? `at most ${energy(found.energy)}` : "no power limit on record",
      watts ? `at the limit of ${shown(watts)} W${of}` : "of this device"]);
    const row = () => make("div", {}, make("dt"), make("dd"), make("dd", { class: "muted" }));
    each(at.facts, rows, row, (made, words) => [...made.children].forEach((cell, place) => write(cell, words[place])));
    const list = found.loans.map(([, , words]) => words);
    write(at.loans.firstChild, list.length ? "Measured on other devices, since nobody has measured them on this one:" : "All constants of the estimate were measured on this device.");
    show(at.loans.lastChild, list.length);
    each(at.loans.lastChild, list, () => make("li"), write);
  }

  const energy = (joules) => (joules < 3.6e6 ? `${shown(joules / 3600)} Wh` : `${shown(joules / 3.6e6)} kWh`);

  function verdict(found, { devices }) {
    const each = devices > 1 ? " on each device" : "";
    if (!found.refusal) return `Yes, it fits: ${gib(found.memory_free)} stay free${each}.`;
    return found.refusal === "does_not_fit" ? `No: ${gib(-found.memory_free)} too much${each}.` : "No answer.";
  }

  function say(state) {
    const found = now(state);
    if (found.refusal) return `${verdict(found, state)} ${found.refusal === "does_not_fit" ? "" : refused(found, state, data)}`.trim();
    return `${verdict(found, state)} First token after ${time(found.time_to_first_token)}, then one each ${time(found.time_per_output_token)}. ${people(found.largest_batch)} fit.`;
  }

  /** Return which numbers of devices stand in no node on record. */
  function closed(name, state) {
    if (name !== "devices") return undefined;
    const [, most] = data.nodes[state.hardware] ?? [];
    const keys = data.answer.shapes.counts.filter((count) => count > (most ?? 1)).map(String);
    if (!keys.length) return { keys, why: "" };
    return { keys, why: most ? `A node on record has ${most} of them at most.` : "Only single ones are on record." };
  }

  live(element, data, { start, draw, say, closed, lists: ["model", "hardware"] });
}

/** Return a share of a whole as a style has it. */
const percent = (share) => `${Number((100 * share).toPrecision(5))}%`;

/** Set styles of an element, those that change. */
function style(element, wanted) {
  for (const [name, value] of Object.entries(wanted)) if (element.style[name] !== String(value)) element.style[name] = value;
}

/** Return a heading of a part. */
function heading(words) {
  return make("p", { class: "run-title" }, words);
}
