// Fields for an answer: a number, one of several, an order, or a text; all by keyboard and screen reader.
// Each has `parts` to put into a form, `get`, `set`, `focus` and `mark` (unreadable or not).
let made = 0;
const newId = () => `exercise-part-${(made += 1)}`;
const status = (className) => make("div", { role: "status", class: className });

/** What a list item or a title says, without what could be pressed in it or found by its id. */
function spoken(node) {
  const copy = node.cloneNode(true);
  all("a, button, [role=button]", copy).forEach((each) => each.replaceWith(...each.childNodes));
  all("[id]", copy).forEach((each) => each.removeAttribute("id"));
  const only = copy.children.length === 1 && copy.firstElementChild;
  return [...(only && only.matches("p") && !copy.textContent.replace(only.textContent, "").trim() ? only : copy).childNodes];
}

function plainText(node) {
  const copy = make("span", {}, ...spoken(node));
  all(".katex-mathml", copy).forEach((each) => each.remove());
  return copy.textContent.replace(/\s+/g, " ").trim();
}

/** A number field with its label and unit. */
function numberField(title, unit) {
  const id = newId();
  const input = make("input", { id, type: "text", inputmode: "decimal", autocomplete: "off", spellcheck: false });
  const label = make("label", { for: id }, title);
  const asked = unit && askedFor(unit);
  if (unit) label.append(make("span", { class: "visually-hidden" }, `${asked.startsWith("in ") ? "" : ","} ${asked}`));
  const row = make("span", { class: "exercise-input" }, input);
  if (unit) row.append(make("span", { "aria-hidden": "true" }, unit));
  return {
    parts: [label, row], focus: () => input.focus(), get: () => input.value,
    set: (value) => (input.value = value ?? ""),
    mark: (bad) => (bad ? input.setAttribute("aria-invalid", "true") : input.removeAttribute("aria-invalid")),
  };
}

/** The list of choices as radio buttons. */
function choiceField(title, items) {
  const name = newId();
  const inputs = items.map((_, index) => make("input", { type: "radio", name, value: `${index + 1}` }));
  const labels = items.map((item, index) => make("label", {}, inputs[index], make("span", {}, ...spoken(item))));
  const field = make("fieldset", { class: "exercise-options" }, make("legend", {}, title), ...labels);
  return {
    parts: [field], focus: () => (inputs.find((each) => each.checked) ?? inputs[0]).focus(),
    get: () => inputs.find((each) => each.checked)?.value ?? "",
    set: (value) => inputs.forEach((each) => (each.checked = each.value === value)), mark() {},
  };
}

/** The list of things to sort, each with buttons that move it up and down. */
function orderField(title, items) {
  const list = make("ol", { class: "exercise-order" });
  const said = status("visually-hidden");
  const rows = items.map((item, index) => {
    const name = plainText(item);
    const [up, down] = ["up", "down"].map((way) =>
      make("button", { type: "button", "aria-label": `Move ${name} ${way}`, class: way }, way === "up" ? "↑" : "↓"));
    const row = make("li", { "data-place": `${index + 1}` }, make("span", {}, ...spoken(item)), up, down);
    const move = (pressed, by) => {
      const other = by < 0 ? row.previousElementSibling : row.nextElementSibling;
      other?.[by < 0 ? "before" : "after"](row);
      mark();
      pressed.focus(); // moving an element takes its focus away
      said.textContent = `${name}: ${other ? "now " : ""}${[...list.children].indexOf(row) + 1} of ${rows.length}`;
    };
    up.addEventListener("click", () => move(up, -1));
    down.addEventListener("click", () => move(down, 1));
    row.addEventListener("keydown", (event) => {
      const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      move(event.target, by);
    });
    return row;
  });
  const mark = () => [...list.children].forEach((row, index, { length }) => {
    row.querySelector(".up").setAttribute("aria-disabled", String(index === 0));
    row.querySelector(".down").setAttribute("aria-disabled", String(index === length - 1));
  });
  const set = (value) => {
    const places = value ? String(value).split(" ") : rows.map((row) => row.dataset.place);
    list.append(...places.map((place) => rows[place - 1]).filter(Boolean));
    mark();
  };
  set("");
  const id = newId();
  list.setAttribute("aria-labelledby", id);
  return {
    parts: [make("p", { id, class: "exercise-label" }, title), list, said], focus: () => rows[0].querySelector("button").focus(),
    get: () => [...list.children].map((row) => row.dataset.place).join(" "), set, mark() {},
  };
}

/** A place for a few sentences. */
function textField(title) {
  const id = newId();
  const input = make("textarea", { id, rows: 5, maxLength: 5000, class: "exercise-text" });
  return {
    parts: [make("label", { for: id }, title), input], focus: () => input.focus(), get: () => input.value,
    set: (value) => (input.value = value ?? ""), mark() {},
  };
}

const FIELDS = { number: numberField, choice: choiceField, order: orderField, text: textField };
