// What is said to an answer: as mlsim_exercises/verdicts.py, whose factors and words are RULES.
// A task has `kind`, `answer`, `tolerance`, `unit` and the answers of its `wrong` paths;
// answers are numbers, or the places of the choices, as in "2" or "3 1 2".

/** Fill the {names} of one of the sayings. */
function say(name, values = {}) {
  return RULES.says[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
}

/** How an answer is given: "in ms", "a factor", "a number of users". */
function askedFor(unit) {
  const words = RULES.asked.find(([pattern]) => new RegExp(`^(?:${pattern})$`).test(unit))[1];
  return words.replace("{unit}", unit);
}

function wantedAs(unit) {
  const asked = askedFor(unit);
  return asked.startsWith("in ") ? say("wanted", { asked }) : asked;
}

/** What a word stands for: a factor, and the power of each thing that it measures. */
function readWord(word, binary) {
  if (word === "") return [1, {}];
  if (/^[0-9]+(?:\.[0-9]+)?(?:e[0-9]+)?$/.test(word) && Number(word)) return [Number(word), {}];
  const single = new RegExp(`^(?:${RULES.plural})$`).exec(word)?.[1] ?? word;
  for (const known of [word, single]) {
    if (Object.hasOwn(RULES.units, known)) return readUnit(RULES.units[known], binary);
    for (const [end, meaning] of Object.entries(RULES.prefixed)) {
      const prefix = known.endsWith(end) ? known.slice(0, -end.length) : "none";
      if (!Object.hasOwn(RULES.prefixes, prefix)) continue;
      const [value, what] = meaning ? readUnit(meaning, binary) : [1, { [end]: 1 }];
      return [(binary && prefix === "K" ? 1024 : RULES.prefixes[prefix]) * value, what];
    }
  }
  return [1, { [single]: 1 }];
}

function readUnit(text, binary) {
  const plain = text.trim().replace(/[µμ]/g, "u");
  const known = (part) => Object.hasOwn(RULES.units, part);
  let total = 1;
  const powers = {};
  (known(plain) ? [plain] : plain.split(new RegExp(RULES.over))).forEach((part, place) => {
    for (const word of known(part) ? [part] : part.split(/[ ·*]+/)) {
      const [value, what] = readWord(word, binary);
      total = place ? total / value : total * value;
      for (const [name, power] of Object.entries(what)) powers[name] = (powers[name] ?? 0) + (place ? -power : power);
    }
  });
  return [total, Object.fromEntries(Object.entries(powers).filter(([, power]) => power))];
}

/** What a number in one unit is multiplied by to be in another one; null if they don't measure the same. */
function unitFactor(written, unit) {
  const binary = new RegExp(RULES.binary).test(unit);
  const [[given, what], [wanted, asked]] = [written, unit].map((each) => readUnit(each, binary));
  const listed = (powers) => JSON.stringify(Object.entries(powers).sort());
  return listed(what) === listed(asked) ? given / wanted : null;
}

/** The factor from what stands after a number to its unit; what is counted may be described. */
function fits(written, unit) {
  const times = unitFactor(written, unit);
  const [first, ...more] = written.trim().split(" ");
  const counted = askedFor(unit) !== `in ${unit}` && !/\/|\bper\b/.test(more.join(" "));
  return times === null && counted ? unitFactor(first, unit) : times;
}

/** Read a number as people write it: what it may mean, or the verdict on what is no number. */
function readNumber(text, unit) {
  const wanted = wantedAs(unit);
  const plain = text.trim().replaceAll("\u2212", "-").replace(new RegExp(RULES.gap, "g"), "$1");
  const found = plain.length <= RULES.longest && new RegExp(`^(?:${RULES.number})$`).exec(plain);
  const part = (at) => (found[at] ? Number(`${found[at].replaceAll(",", "")}e${found[at + 1] ?? found[at + 2] ?? 0}`) : 1);
  const value = found ? part(1) / part(4) : NaN;
  const none = { kind: "no answer", message: say(/^[0-9]+,[0-9]/.test(plain) ? "comma" : "no number", { wanted }) };
  if (!Number.isFinite(value)) return none;
  if (!found[7]) return { values: unit === "%" ? [value, 100 * value] : [value] };
  const times = fits(found[7], unit);
  if (times === null) return { kind: "wrong unit", message: say("other unit", { unit: found[7].trim(), wanted }) };
  return Number.isFinite(value * times) ? { values: [value * times] } : { ...none, message: say("no number", { wanted }) };
}

function judge(task, given) {
  const text = String(given ?? "").trim();
  if (text === "" || text === "...") return { kind: "not attempted", message: say("blank") };
  if (task.kind === "text") return { kind: "unmarked", message: say("unmarked") };
  let [values, answer, wrong] = [[text], task.answer, task.wrong];
  let same = (a, b) => a === b;
  if (task.kind === "number") {
    const read = readNumber(text, task.unit);
    if (read.kind) return read;
    same = (a, b) => Math.abs(a - b) <= task.tolerance * Math.abs(b);
    [values, answer, wrong] = [read.values, Number(answer), wrong.map(Number)];
  }
  const meant = (wanted) => values.some((each) => same(each, wanted));
  if (meant(answer)) return { kind: "right", message: say("right") };
  const path = wrong.findIndex(meant) + 1;
  if (path) return { kind: "wrong path", message: "", path };
  if (task.kind === "number") return howFar(task, values[0], answer, same);
  return { kind: "wrong", message: say(task.kind) };
}

/** Judge a number that is neither right nor a known mistake. */
function howFar(task, value, answer, same) {
  if (answer === 0 || value === 0 || value < 0 !== answer < 0) return { kind: "wrong", message: say("sign") };
  for (const [factor, by] of RULES.slips) {
    if (![factor, 1 / factor].some((slip) => same(value, answer * slip))) continue;
    const unit = task.unit ? ` ${say("unit", { asked: askedFor(task.unit) })}` : "";
    const credit = task.unitCredit ? ` ${say("earns", { share: Number((task.unitCredit * 100).toPrecision(6)) })}` : "";
    return { kind: "wrong unit", message: say("slip", { by }) + unit + credit };
  }
  if (!askedFor(task.unit).startsWith("in ") && same(1 / value, answer)) return { kind: "wrong", message: say("reciprocal") };
  const ratio = value / answer;
  const way = ratio > 1 ? "high" : "low";
  const near = Math.abs(ratio - 1) <= Math.max(RULES.near[0] * task.tolerance, RULES.near[1]);
  if (ratio > 0.1 && ratio < 10) {
    const said = near ? "near" : ratio > 0.5 && ratio < 2 ? "twice" : "magnitude";
    return { kind: "order of magnitude", message: say(said, { way, by: Math.max(1, Math.floor(Math.abs(ratio - 1) * 100 + 0.5)) }) };
  }
  const tens = Math.round(Math.abs(Math.log10(ratio)));
  return { kind: "wrong", message: say("far", { way, by: say(tens === 1 ? "ten" : "tens", { tens }) }) };
}
