// Exercises on the page: a guess first, then an answer that is told what is wrong with it,
// hints one by one, the solution at the end. Without this script a page shows prompts and folds.
const body = document.body;
const button = (text, kind = "") => make("button", { type: "button", class: `exercise-button ${kind}` }, text);

function openFold(fold) {
  fold.hidden = false;
  const header = fold.querySelector("[aria-controls]");
  if (header?.classList.contains("collapsed")) header.click();
  return header;
}

const TONES = { right: "right", "wrong path": "path", "order of magnitude": "near", "wrong unit": "near", "not attempted": "none", "no answer": "none", unmarked: "near" };

/** Show a verdict in its live region; what stands there already isn't read out again. */
function tell(region, kind, ...children) {
  region.dataset.tone = TONES[kind] ?? "far";
  const next = make("div", {}, ...children);
  if (next.innerHTML !== region.innerHTML) region.replaceChildren(...next.childNodes);
}

/** What a page says of an exercise, from its attributes and folds. */
function readTask(box) {
  const data = box.dataset;
  const folds = document.querySelector(`.exercise-folds[data-for="${box.id}"]`);
  const callouts = folds ? all(".callout", folds).filter((each) => !each.parentElement.closest(".callout")) : [];
  const paths = folds ? all(".wrong-path", folds) : [];
  // of a text the list is its rubric
  const list = data.kind === "choice" || data.kind === "order" ? all(":scope > ul", box).at(-1) : null;
  const title = box.querySelector(".theorem-title");
  const whole = title ? plainText(title) : box.id;
  return {
    box, folds, place: `${PAGE}#${box.id}`, kind: data.kind, answer: data.answer, unit: data.unit ?? "",
    asks: Boolean(data.guess), tolerance: Number(data.tolerance ?? 0), unitCredit: Number(data.unitCredit ?? 0), topic: data.topic ?? "", better: data.better ?? "",
    title: /\((.*)\)$/.exec(whole)?.[1] ?? whole,
    list, items: list ? [...list.children] : [],
    wrong: paths.map((each) => each.dataset.answer), paths,
    pathsFold: paths[0]?.closest(".callout"), solution: callouts.at(-1),
    hints: callouts.filter((each) => each.matches(".callout-tip") && !each.contains(paths[0] ?? null)),
  };
}

/** A copy of some of the page's own words. */
function copyOf(node) {
  const copy = node.cloneNode(true);
  all("[id]", copy).forEach((each) => each.removeAttribute("id"));
  return copy;
}

/** What to tell whoever took a wrong path: the page's words, without the answer they begin with. */
function pathWords(task, path) {
  const copy = copyOf(task.paths[path - 1].closest("li"));
  const after = copy.querySelector(".wrong-path").nextSibling;
  if (after?.nodeType === 3) after.data = after.data.replace(/^\s*:\s*/, "");
  copy.querySelector(".wrong-path").remove();
  return make("div", {}, ...copy.childNodes);
}

/** What to tell: of a right answer also why, in the sentence that its solution marks. */
function verdictWords(task, { kind, message, path }) {
  if (path) return pathWords(task, path);
  const why = kind === "right" && task.solution.querySelector(".why");
  return make("p", {}, message, ...(why ? [" ", copyOf(why)] : []));
}

/** An answer as readers see it. */
function answerWords(task, value) {
  if (task.kind === "number") return withUnit(Number(value), task.unit);
  if (task.kind === "text") return "";
  return String(value).split(" ").map((place) => (task.items[place - 1] ? plainText(task.items[place - 1]) : "?")).join(", ");
}

function startExercise(box) {
  const task = readTask(box);
  if (!FIELDS[task.kind] || !task.solution || ((task.kind === "choice" || task.kind === "order") && !task.items.length)) return;
  const chapter = document.querySelector("h1 .chapter-title") ?? document.querySelector("h1");
  const about = { title: task.title, chapter: chapter ? plainText(chapter) : "", kind: task.kind, unit: task.unit, topic: task.topic,
    better: task.better, tolerance: task.tolerance, answer: task.kind === "number" ? Number(task.answer) : task.answer,
    answerText: answerWords(task, task.answer) };
  let state = readKept()[task.place] ?? {};
  const save = (change) => {
    keepRecord(task.place, { ...about, at: state.at ?? new Date().toISOString(), ...change });
    state = readKept()[task.place];
    draw();
  };

  const guess = numberField("Your guess, before you compute", task.unit);
  const keepGuess = make("button", { type: "submit", class: "exercise-button main" }, "Keep my guess");
  const skip = button("Skip", "quiet");
  skip.setAttribute("aria-label", "Skip the guess");
  const guessForm = make("form", { noValidate: true, class: "exercise-form" }, ...guess.parts, keepGuess, skip);
  const guessed = make("p", { class: "exercise-guessed" });
  const answer = FIELDS[task.kind](task.kind === "order" ? "Your order" : "Your answer", task.kind === "number" ? task.unit : task.items);
  const byHand = task.kind === "text";
  const check = make("button", { type: "submit", class: "exercise-button main" }, byHand ? "Keep it" : "Check");
  const answerForm = make("form", { noValidate: true, class: "exercise-form" }, ...answer.parts, check);
  const feedback = status("exercise-feedback");
  const hint = button("Hint");
  const show = button("Show the solution");
  const again = button("Start again", "quiet");
  const why = make("span", { id: newId(), class: "exercise-why" }, `You learn more if you ${task.asks ? "guess" : "try"} first.`);
  const tools = make("div", { class: "exercise-tools" }, hint, show, why, again);
  const panel = make("div", { class: "exercise-work", role: "group", "aria-label": `Your work: ${task.title}` },
    guessForm, guessed, answerForm, feedback, tools);
  const heard = status("visually-hidden");
  panel.append(heard);
  box.classList.add("live");
  task.list?.classList.add("exercise-listed");
  if (task.pathsFold) task.pathsFold.hidden = true;
  box.append(panel, task.folds);

  /** Say something to those who listen; it isn't left for them to come across again. */
  function announce(words) {
    heard.textContent = words;
    setTimeout(() => heard.textContent === words && heard.replaceChildren(), 8000);
  }

  /** Show everything as the state has it. */
  function draw() {
    const asked = state.guess !== undefined || state.skipped || state.revealed || !task.asks;
    const seen = state.solved || state.revealed;
    const ready = state.guess !== undefined || state.tries > 0;
    guessForm.hidden = asked;
    answerForm.hidden = !asked;
    guessed.hidden = task.kind !== "number" || state.guess === undefined;
    guessed.replaceChildren("Your guess: ", make("strong", {}, state.guessText ?? ""));
    const shown = state.hints ?? 0;
    task.hints.forEach((each, index) => (each.hidden = index >= shown));
    hint.hidden = !task.hints.length;
    // it stays, so that the next press doesn't meet the solution in its place
    const last = shown >= task.hints.length;
    hint.setAttribute("aria-disabled", String(last));
    const next = task.hints.length > 1 ? `Hint ${shown + 1} of ${task.hints.length}` : "Hint";
    hint.textContent = last ? "No more hints" : next;
    task.solution.hidden = !state.revealed;
    show.hidden = Boolean(state.revealed);
    show.textContent = ready ? "Show the solution" : "Show it anyway";
    why.hidden = ready || show.hidden || byHand;
    if (why.hidden) show.removeAttribute("aria-describedby");
    else show.setAttribute("aria-describedby", why.id);
    again.hidden = !(asked && (task.asks || state.tries)) && !shown && !state.revealed;
    if (seen || state.given !== undefined) drawFeedback(seen);
    else tell(feedback, "not attempted");
  }

  function drawFeedback(seen) {
    const judged = state.given === undefined ? null : judge(task, state.given);
    const verdict = judged?.kind === "no answer" ? null : judged; // that is told once, and not kept
    const parts = verdict ? [verdictWords(task, verdict)] : [];
    // whoever tries something else after the right answer hears of that alone
    if (state.revealed || (seen && verdict?.kind === "right")) parts.push(howFarWords());
    answer.mark(false);
    tell(feedback, verdict?.kind ?? "not attempted", ...parts);
  }

  function howFarWords() {
    const far = distance({ ...about, guess: state.guess });
    const words = make("p", { class: "exercise-distance" });
    if (task.kind === "number") words.append(`The answer is ${about.answerText}.`);
    if (far) words.append(` Your guess was ${far}.`);
    if (far && body.dataset.guesses) words.append(" ", make("a", { href: body.dataset.guesses }, "All your guesses"));
    return words;
  }

  guessForm.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = guess.get();
    const read = text.trim() ? readNumber(text, task.unit) : { message: "Write a number first. A rough one will do." };
    const [value, share] = read.values ?? [];
    // a share or percent? An answer is right as either, but a guess is kept as one
    const message = read.message ?? (share && Math.abs(value) < 1 ? say("which", { share: digits(share), given: digits(value) }) : "");
    guess.mark(message);
    if (message) return tell(feedback, "no answer", make("p", {}, message)), guess.focus();
    save({ guess: value, guessText: withUnit(value, task.unit) });
    announce(`Your guess is kept: ${state.guessText}. Now work it out.`);
    answer.focus();
  });
  skip.addEventListener("click", () => {
    guess.mark(false);
    save({ skipped: true });
    answer.focus();
  });
  answerForm.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = answer.get();
    const { kind, message } = judge(task, given);
    const first = { choice: "Choose one first.", text: "Write a sentence first." }[task.kind] ?? message;
    answer.mark(kind === "no answer");
    if (kind === "not attempted") return tell(feedback, kind, make("p", {}, first)), answer.focus();
    feedback.replaceChildren(); // so that the same words are read out again
    if (kind === "no answer") return tell(feedback, kind, make("p", {}, message));
    const open = task.kind !== "number" && !byHand && state.guess === undefined && !state.revealed && !state.seen;
    const guessed = open ? { guess: given, guessText: answerWords(task, given) } : {};
    save({ given, tries: (state.tries ?? 0) + 1, solved: state.solved || kind === "right", ...guessed });
  });
  hint.addEventListener("click", () => {
    if ((state.hints ?? 0) >= task.hints.length) return;
    save({ hints: (state.hints ?? 0) + 1 });
    const fold = task.hints[state.hints - 1];
    openFold(fold);
    announce(`Hint: ${plainText(fold.querySelector(".callout-body-container") ?? fold)}`);
  });
  show.addEventListener("click", () => {
    save({ revealed: true });
    openFold(task.solution)?.focus();
  });
  again.addEventListener("click", () => {
    // a guess counts once: who has seen the answer doesn't guess any more
    const first = state.solved || state.revealed || state.seen
      ? { guess: state.guess, guessText: state.guessText, skipped: state.guess === undefined, seen: true } : null;
    keepRecord(task.place, null);
    if (first) keepRecord(task.place, { ...about, at: state.at, ...first });
    state = readKept()[task.place] ?? {};
    guess.set("");
    answer.set("");
    answer.mark(false);
    draw();
    announce("Started again.");
    (guessForm.hidden ? answer : guess).focus();
  });

  // what was kept may be of an older book
  if (state.kind && (state.answer !== about.answer || state.title !== about.title)) keepRecord(task.place, about);
  answer.set(state.given);
  draw();
  task.hints.slice(0, state.hints ?? 0).forEach(openFold);
  if (state.revealed) openFold(task.solution);
}

/** A question with its answer in the fold after it. */
function startSelfCheck(box) {
  const list = all(":scope > ul", box).at(-1);
  const fold = box.nextElementSibling;
  if (!list || !fold?.matches(".callout")) return;
  const question = box.querySelector("p");
  const place = `${PAGE}#selfcheck ${plainText(question ?? box).slice(0, 100)}`;
  const task = { kind: "choice", answer: box.dataset.answer, wrong: [] };
  const field = choiceField("Your answer", [...list.children]);
  const check = make("button", { type: "submit", class: "exercise-button main" }, "Check");
  const show = button("Show the answer");
  const feedback = status("exercise-feedback");
  const form = make("form", { noValidate: true, class: "exercise-form" }, ...field.parts, check, show);
  const open = () => {
    show.hidden = true;
    return openFold(fold);
  };
  const react = (given) => {
    const { kind, message } = judge(task, given);
    tell(feedback, kind, make("p", {}, kind === "not attempted" ? "Choose one first." : message));
    if (kind === "right") open();
    return kind;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const kind = react(field.get());
    if (kind !== "not attempted") keepRecord(place, { given: field.get() });
  });
  show.addEventListener("click", () => {
    keepRecord(place, { revealed: true });
    open()?.focus();
  });
  list.classList.add("exercise-listed");
  box.classList.add("live");
  fold.hidden = true;
  box.append(form, feedback, fold);
  const state = readKept()[place] ?? {};
  field.set(state.given);
  if (state.given) react(state.given);
  if (state.revealed) open();
}

all(".exercise.checked[data-kind]").forEach(startExercise);
all(".selfcheck[data-answer]").forEach(startSelfCheck);
// what a link led to lies elsewhere now
if (location.hash && document.querySelector(".live")) reveal(decodeURIComponent(location.hash.slice(1)));
