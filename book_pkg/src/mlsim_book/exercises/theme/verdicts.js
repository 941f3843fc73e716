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

function spelled(unit) {
  const plain = unit.trim().replace(/[µμ]/g, "u");
  const known = Object.hasOwn(RULES.spellings, plain) ? RULES.spellings[plain] : plain.replace(/\s+/g, "");
  return new RegExp(`^(?:${RULES.plural})$`).exec(known)?.[1] ?? known;
}

/** Whether what stands after a number is its unit; what is counted may be described. */
function fits(written, unit) {
  if (spelled(written) === spelled(unit)) return true;
  const [first, ...more] = written.trim().split(" ");
  return askedFor(unit) !== `in ${unit}` && spelled(first) === spelled(unit) && !/\/|\bper\b/.test(more.join(" "));
}

/** Read a number as people write it: its value, or the verdict on what is no number. */
function readNumber(text, unit) {
  const wanted = wantedAs(unit);
  const plain = text.trim().replaceAll("\u2212", "-").replace(new RegExp(RULES.gap, "g"), "$1");
  const found = plain.length <= RULES.longest && new RegExp(`^(?:${RULES.number})$`).exec(plain);
  const value = found ? Number(`${found[1].replaceAll(",", "")}e${found[2] ?? found[3] ?? 0}`) : NaN;
  if (!Number.isFinite(value)) {
    return { kind: "no answer", message: say(/^[0-9]+,[0-9]/.test(plain) ? "comma" : "no number", { wanted }) };
  }
  if (found[4] && !fits(found[4], unit)) {
    return { kind: "wrong unit", message: say("other unit", { unit: found[4].trim(), wanted }) };
  }
  return { value };
}

function judge(task, given) {
  const text = String(given ?? "").trim();
  if (text === "" || text === "...") return { kind: "not attempted", message: say("blank") };
  if (task.kind === "text") return { kind: "unmarked", message: say("unmarked") };
  let [value, answer, wrong] = [text, task.answer, task.wrong];
  let same = (a, b) => a === b;
  if (task.kind === "number") {
    const read = readNumber(text, task.unit);
    if (read.kind) return read;
    same = (a, b) => Math.abs(a - b) <= task.tolerance * Math.abs(b);
    [value, answer, wrong] = [read.value, Number(answer), wrong.map(Number)];
  }
  if (same(value, answer)) return { kind: "right", message: say("right") };
  const path = wrong.findIndex((each) => same(value, each)) + 1;
  if (path) return { kind: "wrong path", message: "", path };
  if (task.kind === "number") return howFar(task, value, answer, same);
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
  const ratio = value / answer;
  const way = ratio > 1 ? "high" : "low";
  if (Math.abs(ratio - 1) <= RULES.near * task.tolerance) return { kind: "order of magnitude", message: say("near", { way }) };
  if (ratio > 0.1 && ratio < 10) return { kind: "order of magnitude", message: say("magnitude", { way }) };
  const tens = Math.round(Math.abs(Math.log10(ratio)));
  return { kind: "wrong", message: say("far", { way, by: say(tens === 1 ? "ten" : "tens", { tens }) }) };
}
