// Will it run? Any language model on any device: does it fit, how fast, for how many, at what price.
import { answer, constants } from "./answer.js";
import { live, make, set, shown } from "./live.js";
import { css } from "./will_it_run_style.js";

const GIB = 2 ** 30;
const MILLION = 1e6;
const PARTS = [
  ["weight_memory", "Weights", "run-weights"],
  ["cache_memory", "KV cache", "run-cache"],
  ["activation_memory", "Activations", "run-activations"],
];
const SPEEDS = [
  { name: "time_to_first_token", words: "First token", of: "after the prompt is sent" },
  { name: "time_per_output_token", words: "Each further token", of: "for each user" },
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
  const bands = Object.fromEntries(SPEEDS.map(({ name }) => [name, band(name, found, bound, loans, data.bands)]));
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

  function start({ picture }) {
    picture.before(element.querySelector(".live-controls"));
    const part = (name, tag = "div", ...inner) => (at[name] = make(tag, { class: `run-${name}` }, ...inner));
    part("verdict", "p");
    part("why");
    part("bar");
    part("legend", "dl");
    part("memory", "section", heading("Memory"), at.bar, at.legend);
    part("speeds", "div");
    part("speed", "section", heading("Speed"), at.speeds);
    part("facts", "dl");
    part("loans", "div");
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

  function draw(state) {
    const found = asked(state, data);
    const told = found.refusal && found.refusal !== "does_not_fit";
    set(at.verdict, { "data-fits": found.refusal ? "no" : "yes" });
    at.verdict.textContent = verdict(found, state);
    at.why.replaceChildren(...because(found, state));
    at.memory.hidden = told;
    at.code.hidden = found.refusal === "no_node";
    at.memory.firstChild.textContent = state.devices > 1 ? "Memory of each device" : "Memory";
    at.speed.hidden = at.facts.hidden = at.loans.hidden = Boolean(found.refusal);
    const written = code(state, data);
    for (const name of Object.keys(written)) at[name].textContent = written[name];
    if (told) return;
    memory(found);
    if (found.refusal) return;
    speeds(found);
    facts(found, state);
  }

  function because(found, state) {
    if (!found.refusal) return [];
    if (found.refusal !== "does_not_fit") return [make("p", {}, refused(found, state, data))];
    const can = ways(state, data);
    const need = `${state.devices > 1 ? "Each device" : "It"} needs ${gib(found.memory_required)}, and ${gib(found.usable_memory)} can be used.`;
    if (!can.length) return [make("p", {}, `${need} No node on record holds it.`)];
    return [make("p", {}, `${need} It would fit if you`), make("ul", {}, ...can.map((each) => make("li", {}, each)))];
  }

  function memory(found) {
    const { reserve } = found;
    const total = Math.max(found.usable_memory + reserve, found.memory_required);
    const free = found.memory_free;
    const parts = PARTS.map(([name, words, kind]) => [found[name], words, kind]);
    if (free > 0) parts.push([free, "Free", "run-free"]);
    if (free >= 0) parts.push([reserve, "Reserve", "run-reserve"]);
    at.bar.replaceChildren(
      ...parts.map(([bytes, , kind]) => {
        const piece = make("span", { class: kind });
        piece.style.flexGrow = bytes / total;
        return piece;
      }),
    );
    if (free < 0) {
      const mark = make("i", { class: "run-mark" });
      mark.style.left = `${(100 * found.usable_memory) / total}%`;
      at.bar.append(mark);
      parts.push([-free, "Too much: right of the line", "run-beyond"]);
    }
    at.legend.replaceChildren(...parts.map(([bytes, words, kind]) => make("div", { class: kind }, make("dt", {}, words), make("dd", {}, gib(bytes)))));
  }

  function speeds(found) {
    at.speeds.replaceChildren(
      ...SPEEDS.map(({ name, words, of }) => {
        const [low, high] = found.bands[name];
        const roof = found.roofline[name];
        const most = 1.12 * Math.max(high, roof);
        const scale = make("div", { class: "run-scale", "aria-hidden": "true" });
        const put = (kind, from, to = from) => {
          const mark = make("span", { class: kind });
          mark.style.left = `${(100 * from) / most}%`;
          if (to !== from) mark.style.width = `${(100 * (to - from)) / most}%`;
          scale.append(mark);
        };
        put("run-band", low, high);
        put("run-roof", roof);
        put("run-here", found[name]);
        return make("div", { class: "run-card" },
          make("p", { class: "run-title" }, words), make("p", { class: "run-number" }, time(found[name])), make("p", { class: "muted" }, of), scale,
          make("p", {}, `80 % band: ${time(low)} to ${time(high)}. Roofline: ${time(roof)}.`));
      }),
    );
    const rate = found.decode_throughput;
    at.speeds.append(make("div", { class: "run-card" },
      make("p", { class: "run-title" }, "All users together"), make("p", { class: "run-number" }, `${shown(rate)} tokens/s`),
      make("p", { class: "muted" }, "while they are answered"),
      make("p", {}, `Prompts included: ${shown(found.output_throughput)} tokens/s.`)));
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
    at.facts.replaceChildren(...rows.map(([term, value, note]) => make("div", {}, make("dt", {}, term), make("dd", {}, value), make("dd", { class: "muted" }, note))));
    const list = found.loans.map(([, , words]) => make("li", {}, words));
    at.loans.replaceChildren(...(list.length ? [make("p", {}, "Measured on other devices, since nobody has measured them on this one:"), make("ul", {}, ...list)]
      : [make("p", {}, "All constants of the estimate were measured on this device.")]));
  }

  const energy = (joules) => (joules < 3.6e6 ? `${shown(joules / 3600)} Wh` : `${shown(joules / 3.6e6)} kWh`);

  function verdict(found, { devices }) {
    const each = devices > 1 ? " on each device" : "";
    if (!found.refusal) return `Yes, it fits: ${gib(found.memory_free)} stay free${each}.`;
    return found.refusal === "does_not_fit" ? `No: ${gib(-found.memory_free)} too much${each}.` : "No answer.";
  }

  function say(state) {
    const found = asked(state, data);
    if (found.refusal) return `${verdict(found, state)} ${found.refusal === "does_not_fit" ? "" : refused(found, state, data)}`.trim();
    return `${verdict(found, state)} First token after ${time(found.time_to_first_token)}, then one each ${time(found.time_per_output_token)}. ${people(found.largest_batch)} fit.`;
  }

  live(element, data, { start, draw, say, css, lists: ["model", "hardware"] });
}

/** Return a heading of a part. */
function heading(words) {
  return make("p", { class: "run-title" }, words);
}
