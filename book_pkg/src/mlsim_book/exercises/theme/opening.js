// Guesses at the head of a chapter: each is kept from a box of its own, and where the page settles
// it a line says how far it was. Without this script a page shows the questions.
const AS_GOOD = 0.1; // nearer than this part of the answer is right

/** What a page says of a guess that it asks, from its attributes. */
function readGuess(box) {
  const { kind, answer, measured = "", unit = "", topic = "", better = "" } = box.dataset;
  const list = kind === "number" ? null : all("ul", box).at(-1);
  const asked = box.cloneNode(true);
  if (list) all("ul", asked).at(-1).remove();
  const chapter = document.querySelector("h1 .chapter-title") ?? document.querySelector("h1");
  const task = { kind, unit, items: list ? [...list.children] : [] };
  const number = kind === "number";
  return {
    list, measured, task, place: `${PAGE}#${box.id}`, title: plainText(asked),
    about: { title: plainText(asked), chapter: chapter ? plainText(chapter) : "", kind, unit, topic, better,
      tolerance: AS_GOOD, answer: number ? Number(answer) : answer, answerText: answerWords(task, answer) },
  };
}

/** How far a guess was, and what was measured: "You guessed 80 users: 2.5 times too low." */
function settledWords({ about, measured }, { guess, guessText }) {
  const far = distance({ ...about, guess });
  const right = about.kind === "number" ? far === "right" : guess === about.answer;
  let said = right ? ": right" : far ? `: ${far}` : `. It is ${about.answerText}`;
  if (far === "right" && guess !== about.answer) said = `: right, within ${AS_GOOD * 100} %`;
  const named = about.unit === "times" ? `a factor of ${digits(guess)}` : guessText; // not "8 times: 2 times too high"
  const words = ["You guessed ", make("strong", {}, named), `${said}.`];
  if (measured) words.push(` Measured: ${measured.replace(/\.$/, "")}.`);
  return { right, words };
}

function startGuess(box) {
  const place = all(".settles").find((each) => each.dataset.guess === box.id);
  if (!place || box.dataset.answer === undefined) return;
  const asked = readGuess(box);
  const { kind, unit } = asked.about;
  let state = readKept()[asked.place] ?? {};

  const field = FIELDS[kind](kind === "order" ? "Your order" : "Your guess", kind === "number" ? unit : asked.task.items);
  // the question stands right above
  (kind === "choice" ? field.parts[0].firstElementChild : field.parts[0]).classList.add("visually-hidden");
  const keep = make("button", { type: "submit", class: "exercise-button" }, "Keep my guess");
  const skip = button("Skip", "quiet");
  skip.setAttribute("aria-label", "Skip this guess");
  const form = make("form", { noValidate: true, class: "exercise-form" }, ...field.parts, keep, skip);
  const feedback = status("exercise-feedback");
  const words = make("span", { tabIndex: -1 });
  const change = button("Change it", "quiet");
  const done = make("p", { class: "exercise-guessed" }, words, change);
  const settled = make("p", { class: "guess-settled" });
  box.append(make("div", { class: "exercise-work", role: "group", "aria-label": asked.title }, form, feedback, done));
  box.classList.add("live");
  asked.list?.classList.add("exercise-listed");
  const block = place.closest("p, li, figcaption, table, div");
  if (block === place || block.matches("li, figcaption")) block.append(settled);
  else {
    let last = block; // several may be settled in one paragraph
    while (last.nextElementSibling?.matches(".guess-settled")) last = last.nextElementSibling;
    last.after(settled);
  }

  function draw() {
    const guessed = state.guess !== undefined;
    form.hidden = guessed || Boolean(state.skipped);
    done.hidden = !form.hidden;
    words.replaceChildren(...(guessed ? ["Your guess: ", make("strong", {}, state.guessText ?? "")] : ["Skipped."]));
    change.textContent = guessed ? "Change it" : "Guess after all";
    change.hidden = Boolean(state.seen); // a guess counts once
    settled.hidden = !guessed;
    const told = guessed ? settledWords(asked, state) : { words: [] };
    settled.replaceChildren(...told.words);
    settled.dataset.tone = told.right ? "right" : "far";
    // a figure that this guess opens reads how it stands
    const ours = guessed && kind === "number" ? ` Computed: ${asked.about.answerText}.` : "";
    Object.assign(box.dataset, { guessed: state.guess ?? "", said: settled.textContent + ours,
      state: guessed ? "kept" : state.skipped ? "skipped" : "open" });
  }

  const save = (changed) => {
    keepRecord(asked.place, { ...asked.about, at: state.at ?? new Date().toISOString(), ...changed });
    state = readKept()[asked.place];
    draw();
  };

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = field.get();
    let [guess, message] = [text, text ? "" : "Choose one first."];
    if (kind === "number") {
      const read = text.trim() ? readNumber(text, unit) : { message: "Write a number first. A rough one will do." };
      const [value, share] = read.values ?? [];
      guess = value;
      message = read.message ?? (share && Math.abs(value) < 1 && !/%/.test(text) ? say("which", { share: digits(share), given: digits(value) }) : "");
      if (!message && unit === "%" && !(value >= 0 && value <= 100)) message = "A part of a whole is at least 0 % and at most 100 %.";
    }
    field.mark(message);
    tell(feedback, "no answer", ...(message ? [make("p", {}, message)] : []));
    if (message) return field.focus();
    save({ guess, guessText: kind === "number" ? withUnit(guess, unit) : answerWords(asked.task, guess), skipped: false });
    words.focus();
  });
  box.addEventListener("skip", () => {
    field.mark(false);
    tell(feedback, "no answer");
    save({ skipped: true });
  });
  skip.addEventListener("click", () => {
    box.dispatchEvent(new Event("skip"));
    change.focus();
  });
  change.addEventListener("click", () => {
    field.set(kind === "number" ? state.guess : state.guess ?? "");
    keepRecord(asked.place, null);
    state = {};
    draw();
    field.focus();
  });
  // who has read how far a guess was doesn't guess any more
  new IntersectionObserver((entries) => {
    if (entries.some((each) => each.isIntersecting) && state.guess !== undefined && !state.seen) save({ seen: true });
  }, { threshold: 0.6 }).observe(settled);

  // what was kept may be of an older book
  if (state.kind && (state.answer !== asked.about.answer || state.title !== asked.about.title)) save({});
  draw();
}

all(".guess[data-kind]").forEach(startGuess);
