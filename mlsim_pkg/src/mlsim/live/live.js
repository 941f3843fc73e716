// What all live figures share: controls, the page's address, what is said, numbers in sentences.
//
//   live(element, data, view)
//
// `data.handles` are numbers that move, `data.choices` differences that were made beforehand. A view
// has `say(state)`, `draw(state, parts, said)`, and may have `most(name, state)` for a handle whose end
// depends on the others, `play: {handle, every}` in milliseconds, and `drag: {part, handle, value}`.
// `closed(name, state)` tells which options of a choice are closed, and why. `parts.change` sets handles and choices; `parts.guess` is the reader's own
// number, where a guess of the page (`data.guess`) opens the figure. Its box says how it stands, by
// `data-state` ("open", "kept", "skipped"), `data-guessed` and `data-said`.

const MOST = 8; // options that stand side by side; more are a list
const QUIET = 500; // milliseconds until a change is announced and the address follows

/** Return a new element with attributes and children. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  set(element, attributes);
  element.append(...children);
  return element;
}

/** Return a new element of SVG. */
export function draw(tag, attributes = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  set(element, attributes);
  element.append(...children);
  return element;
}

/** Set attributes; what has its value already is left alone, so that it need not be styled and drawn anew. */
export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
  }
  return element;
}

/** Give an element a text. Its text node stays: a new one would have the whole page styled anew. */
export function write(element, text) {
  if (element.firstChild) {
    if (element.firstChild.data !== text) element.firstChild.data = text;
  } else element.append(text);
}

/** Show as many children as there are items: they are made once, by `shape`, and `fill` writes into them. */
export function each(parent, items, shape, fill) {
  while (parent.children.length < items.length) parent.append(shape());
  for (const [at, child] of [...parent.children].entries()) {
    show(child, at < items.length);
    if (at < items.length) fill(child, items[at]);
  }
}

/** Show an element, or hide it. */
export function show(element, seen) {
  if (element.hidden === Boolean(seen)) element.hidden = !seen;
}

/** Return a number as people read it: of three or four digits, or whole. (To start `Intl` takes 10 ms.) */
export function shown(value, digits = 3) {
  if (value !== 0 && Math.abs(value) < 1e-3) return value.toPrecision(digits);
  const [whole, ...part] = String(Number.isInteger(value) ? value : Number(value.toPrecision(digits))).split(".");
  return [whole.replace(/\B(?=(\d{3})+$)/g, ","), ...part].join(".");
}

/** Return a handle's value with its unit. */
function withUnit(handle, value) {
  return `${shown(value, handle.digits ?? 3)}${handle.unit ? ` ${handle.unit}` : ""}`;
}

// ------------------------------------------------------------- a handle and its slider
const STEPS = 120; // of a slider whose places are not evenly apart

/** Return the values of a slider whose places are not evenly apart, each another than the one before it. */
function rungs(handle) {
  if (handle.values || handle.scale !== "log") return handle.values;
  if (handle.rungs?.at(-1) !== rounded(handle, handle.high)) {
    const all = Array.from({ length: STEPS + 1 }, (_, place) =>
      rounded(handle, handle.low * (handle.high / handle.low) ** (place / STEPS)),
    );
    handle.rungs = [...new Set(all)];
  }
  return handle.rungs;
}

/** Return the place of a value on the slider. */
function placeOf(handle, value) {
  const apart = rungs(handle)?.map((each) => Math.abs(each - value));
  return apart ? apart.indexOf(Math.min(...apart)) : value;
}

/** Return the value at a place of the slider. */
const valueAt = (handle, place) => rungs(handle)?.[place] ?? rounded(handle, place);

/** Return the nearest value that a handle may have. */
function rounded(handle, value) {
  if (handle.values) return valueAt(handle, placeOf(handle, value));
  const held = Math.min(handle.high, Math.max(handle.low, value));
  if (handle.step) {
    const steps = Math.round((held - handle.low) / handle.step);
    return Number((handle.low + steps * handle.step).toPrecision(12));
  }
  return Number(held.toPrecision(handle.digits ?? 3));
}

/** Return the slider's lowest and highest place and its step. */
function placesOf(handle) {
  const all = rungs(handle);
  if (all) return [0, all.length - 1, 1];
  return [handle.low, handle.high, handle.step ?? (handle.high - handle.low) / STEPS];
}

// ------------------------------------------------------------------------ the figure
let count = 0;

/** Make a live figure in an element. */
export function live(element, data, view) {
  const own = `live-${(count += 1)}`;
  const home = element.closest("[id^=fig-]")?.id.slice(4) || data.name || own;
  const handles = Object.fromEntries((data.handles ?? []).map((each) => [each.name, { ...each }]));
  const choices = data.choices ?? [];
  const starts = Object.fromEntries([...Object.values(handles), ...choices].map((each) => [each.name, each.start]));
  const state = { ...starts, ...fromAddress() };
  const followers = []; // what shows a handle's value

  const picture = make("div", { class: "live-picture" });
  const controls = make("fieldset", { class: "live-controls", "aria-label": data.label || "Settings" });
  const summary = make("p", { class: "live-summary" });
  const status = make("p", { class: "live-status", role: "status" });
  const box = data.guess ? document.getElementById(data.guess) : null;
  const gate = make("p", { class: "live-gate", hidden: "" });
  const told = make("p", { class: "live-told", hidden: "" });
  element.append(told, picture, gate, controls, summary, status);

  let waiting = 0;
  let player = 0;
  const parts = { picture, own, width: 0, jumped: true, starts, change };

  /** Change something, and show what follows from it. */
  function change(changes, { quiet = false } = {}) {
    if (controls.disabled) return;
    const before = { ...state };
    Object.assign(state, changes);
    settle();
    parts.jumped = Object.keys(state).some((name) => name !== view.play?.handle && state[name] !== before[name]);
    if (view.play) parts.jumped ||= Math.abs(state[view.play.handle] - before[view.play.handle]) !== 1;
    render();
    if (quiet) return;
    clearTimeout(waiting);
    waiting = setTimeout(tell, QUIET);
  }

  /** Let the address follow, and announce what changed. */
  function tell() {
    if (!waiting) return;
    clearTimeout(waiting);
    waiting = 0;
    toAddress();
    if (!player) write(status, summary.textContent);
  }

  /** Keep each handle within its range, which may depend on the others. */
  function settle() {
    for (const handle of Object.values(handles)) {
      if (view.most) handle.high = view.most(handle.name, state) ?? handle.high;
      state[handle.name] = rounded(handle, Number(state[handle.name]));
    }
  }

  function render() {
    followers.forEach((follow) => follow());
    if (!parts.width) return;
    const said = view.say(state);
    view.draw(state, parts, said);
    write(summary, said);
  }

  // --------------------------------------------------------------- a guess that opens it
  /** Keep the figure closed while its guess is open; then say how far the reader's number was. */
  function stand() {
    const closed = box.dataset.state === "open";
    controls.disabled = closed;
    gate.hidden = !closed;
    element.classList.toggle("live-closed", closed);
    parts.guess = Number.parseFloat(box.dataset.guessed);
    write(told, closed ? "" : box.dataset.said ?? "");
    told.hidden = !told.textContent;
    if (!closed) render();
  }

  function keepClosed() {
    const skip = make("button", { type: "button", class: "live-button" }, "Skip the guess");
    skip.addEventListener("click", () => {
      box.dispatchEvent(new Event("skip"));
      controls.querySelector("input, select").focus();
    });
    gate.append(make("a", { href: `#${data.guess}` }, "Guess first"), ": then this figure moves. ", skip);
    new MutationObserver(stand).observe(box, { attributeFilter: ["data-state", "data-said"] });
    stand();
  }

  // ---------------------------------------------------------------- the page's address
  function fromAddress() {
    const given = new URLSearchParams(location.search);
    const found = {};
    for (const handle of Object.values(handles)) {
      const value = Number.parseFloat(given.get(`${home}.${handle.name}`));
      if (Number.isFinite(value)) found[handle.name] = value;
    }
    for (const choice of choices) {
      const value = given.get(`${home}.${choice.name}`);
      if (choice.options.some(([key]) => key === value)) found[choice.name] = value;
    }
    return found;
  }

  function toAddress() {
    const address = new URL(location.href);
    for (const name of Object.keys(starts)) {
      address.searchParams.delete(`${home}.${name}`); // all stand in one order, however they came
      if (state[name] !== starts[name]) address.searchParams.set(`${home}.${name}`, state[name]);
    }
    try {
      history.replaceState(history.state, "", address);
    } catch {
      /* a page from disk may keep its address */
    }
  }

  // --------------------------------------------------------------------- the controls
  function slider(handle) {
    const id = `${own}-${handle.name}`;
    const input = make("input", { type: "range", id });
    const output = make("output", { for: id });
    let most = 0; // letters that it shows
    input.addEventListener("input", () => {
      pause();
      change({ [handle.name]: valueAt(handle, Number(input.value)) });
    });
    followers.push(() => {
      const [min, max, step] = placesOf(handle);
      const said = withUnit(handle, state[handle.name]);
      set(input, { min, max, step, "aria-valuetext": said });
      const place = placeOf(handle, state[handle.name]);
      if (Number(input.value) !== place) input.value = place;
      const part = `${(100 * (Number(input.value) - min)) / (max - min || 1)}%`;
      if (input.style.getPropertyValue("--part") !== part) input.style.setProperty("--part", part);
      write(output, said);
      if (said.length <= most) return;
      const all = rungs(handle) ?? [handle.low, handle.start, handle.high];
      most = Math.max(said.length, ...all.map((value) => withUnit(handle, value).length));
      output.style.setProperty("--most", most);
    });
    return make("div", { class: "live-handle" }, make("label", { for: id }, handle.label, " "), output, input);
  }

  function radios(choice) {
    const set_ = make("fieldset", { class: "live-choice" }, make("legend", {}, choice.label));
    const why = make("p", { class: "live-why", id: `${own}-${choice.name}-why` });
    let closed = {};
    if (view.closed?.(choice.name, state)) {
      set(set_, { "aria-describedby": why.id });
      followers.push(() => {
        closed = view.closed(choice.name, state);
        write(why, closed.why);
      });
    }
    for (const [key, label] of choice.options) {
      const input = make("input", { type: "radio", name: `${own}-${choice.name}`, value: key });
      input.addEventListener("change", () => {
        pause();
        change({ [choice.name]: key });
      });
      followers.push(() => {
        const chosen = state[choice.name] === key;
        if (input.checked !== chosen) input.checked = chosen;
        const shut = !chosen && Boolean(closed.keys?.includes(key));
        if (input.disabled !== shut) input.disabled = shut;
      });
      set_.append(make("label", {}, input, make("span", {}, label)));
    }
    if (set_.hasAttribute("aria-describedby")) set_.append(why);
    return set_;
  }

  function list(choice) {
    const id = `${own}-${choice.name}`;
    const select = make("select", { id });
    const groups = {};
    for (const [key, label] of choice.options) {
      const [group, inner] = key.includes(".") ? key.split(".") : [];
      const place = inner ? (groups[group] ??= make("optgroup", { label: group })) : select;
      if (inner && !place.parentNode) select.append(place);
      place.append(make("option", { value: key }, label));
    }
    select.addEventListener("change", () => {
      pause();
      change({ [choice.name]: select.value });
    });
    followers.push(() => {
      if (select.value !== state[choice.name]) select.value = state[choice.name];
    });
    return make("div", { class: "live-list" }, make("label", { for: id }, choice.label, " "), select);
  }

  function button(label, sign, act) {
    const made = make("button", { type: "button", class: "live-button", "aria-label": label, title: label });
    made.append(sign);
    made.addEventListener("click", act);
    return made;
  }

  const SIGNS = { back: "M3 3h2v10H3zM13 3v10L6 8z", play: "M4 2.5v11l9-5.5z", pause: "M4 3h3v10H4zM9 3h3v10H9z", next: "M11 3h2v10h-2zM3 3v10l7-5z" };

  function sign(name) {
    const svg = draw("svg", { viewBox: "0 0 16 16", "aria-hidden": "true", focusable: "false" });
    svg.append(draw("path", { d: SIGNS[name] }));
    return svg;
  }

  let playButton;

  function pause() {
    if (!player) return;
    clearInterval(player);
    player = 0;
    playButton.replaceChildren(sign("play"));
    set(playButton, { "aria-label": "Play", title: "Play" });
  }

  function play() {
    const { handle: name, every } = view.play;
    const handle = handles[name];
    if (state[name] >= handle.high) change({ [name]: handle.low });
    playButton.replaceChildren(sign("pause"));
    set(playButton, { "aria-label": "Pause", title: "Pause" });
    player = setInterval(() => {
      change({ [name]: state[name] + 1 });
      if (state[name] < handle.high) return;
      pause();
      write(status, summary.textContent);
    }, every);
  }

  function step(by) {
    pause();
    change({ [view.play.handle]: state[view.play.handle] + by });
  }

  const short = ({ name, options }) => options.length <= MOST && !view.lists?.includes(name);
  choices.forEach((each) => controls.append(short(each) ? radios(each) : list(each)));
  for (const handle of Object.values(handles)) controls.append(slider(handle));
  const buttons = make("div", { class: "live-buttons" });
  if (view.play) {
    const name = handles[view.play.handle].label.toLowerCase();
    playButton = button("Play", sign("play"), () => (player ? pause() : play()));
    buttons.append(
      button(`Previous ${name}`, sign("back"), () => step(-1)),
      playButton,
      button(`Next ${name}`, sign("next"), () => step(1)),
    );
  }
  const reset = make("button", { type: "button", class: "live-button live-reset" }, "Reset");
  reset.addEventListener("click", () => {
    pause();
    change({ ...starts });
  });
  buttons.append(reset);
  controls.append(buttons);

  // ------------------------------------------------------- what is dragged in the picture
  function drags({ part, handle: name, value }) {
    const place = typeof part === "function" ? part() : picture;
    place.classList.add("live-drag");
    const move = (event) => {
      const box = place.getBoundingClientRect();
      pause();
      change({ [name]: rounded(handles[name], value(event.clientX - box.left, parts, state)) });
    };
    place.addEventListener("pointerdown", (event) => {
      place.setPointerCapture(event.pointerId);
      move(event);
    });
    place.addEventListener("pointermove", (event) => {
      if (place.hasPointerCapture(event.pointerId)) move(event);
    });
  }

  // ------------------------------------------------------------- numbers in sentences
  function scrubs(number, handle) {
    const span = number.getAttribute("data-unit") === "" ? { ...handle, unit: "" } : handle;
    set(number, { role: "spinbutton", tabindex: "0", "aria-label": handle.label });
    let typed = "";
    let from = null;
    const give = (value) => {
      typed = "";
      pause();
      change({ [handle.name]: value });
    };
    const moved = (by) => {
      const [min, max, size] = placesOf(handle);
      const at = placeOf(handle, state[handle.name]) + by * size;
      return valueAt(handle, Math.min(max, Math.max(min, at)));
    };
    followers.push(() => {
      write(number, typed || withUnit(span, state[handle.name]));
      set(number, {
        "aria-valuemin": handle.values?.[0] ?? handle.low,
        "aria-valuemax": handle.values?.at(-1) ?? handle.high,
        "aria-valuenow": state[handle.name],
        "aria-disabled": controls.disabled,
        "aria-valuetext": withUnit(handle, state[handle.name]),
      });
    });
    number.addEventListener("keydown", (event) => {
      const by = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10, Home: -1e9, End: 1e9 }[event.key];
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (by) give(moved(by));
      else if (/^[\d.]$/.test(event.key)) typed += event.key;
      else if (event.key === "Backspace") typed = typed.slice(0, -1);
      else if (event.key === "Enter" && typed) give(rounded(handle, Number.parseFloat(typed)));
      else if (event.key === "Escape" && typed) typed = "";
      else return;
      event.preventDefault();
      render();
    });
    number.addEventListener("blur", () => typed && give(rounded(handle, Number.parseFloat(typed))));
    number.addEventListener("pointerdown", (event) => {
      from = { x: event.clientX, place: placeOf(handle, state[handle.name]) };
      number.setPointerCapture(event.pointerId);
    });
    number.addEventListener("pointermove", (event) => {
      if (!from || !number.hasPointerCapture(event.pointerId)) return;
      const [min, max] = placesOf(handle);
      const place = from.place + ((event.clientX - from.x) / 240) * (max - min);
      give(valueAt(handle, Math.round(Math.min(max, Math.max(min, place)) * 1e6) / 1e6));
    });
    number.addEventListener("pointerup", () => (from = null));
  }

  for (const number of document.querySelectorAll(".scrub[data-handle]:not([role])")) {
    const handle = handles[number.dataset.handle];
    const wanted = number.dataset.figure?.replace(/^fig-/, "");
    if (handle && (!wanted || wanted === home)) scrubs(number, handle);
  }

  // Who leaves a control or the page, or copies, finds the address as it should be.
  for (const moment of ["blur", "pagehide", "copy"]) addEventListener(moment, tell, true);
  settle();
  view.start?.(parts, state);
  if (view.drag) drags(view.drag);
  // The width is known once the figure is shown, and changes with the window.
  new ResizeObserver(() => {
    if (picture.clientWidth === parts.width) return;
    parts.width = picture.clientWidth;
    parts.jumped = true;
    render();
  }).observe(picture);
  if (box) keepClosed();
  parts.width = picture.clientWidth;
  render();
}
