// Tables marked .sortable, .filterable or .comparable, themselves or by a box around several.
// Rows of one box belong together by the words of their first cell. Loaded where there are any.
(function () {
  const MARKS = ".sortable, .filterable, .comparable";
  const MOST = 4; // more columns than that are no comparison
  const SENTENCE = 24; // more letters than that are no name
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name in element && typeof value !== "string") element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  };
  const words = (cell) => cell.textContent.replace(/\s+/g, " ").trim();

  /** What tells a row, in all tables: its first cell; if that is said twice in one table, itself. */
  const names = new Map();
  const nameOf = (row) => names.get(row);
  function nameRows(tables) {
    const firsts = tables.map((table) => [...table.tBodies[0].rows].map((row) => words(row.cells[0])));
    const told = firsts.every((own) => new Set(own).size === own.length);
    tables.forEach((table, at) =>
      [...table.tBodies[0].rows].forEach((row, line) => names.set(row, told ? firsts[at][line] : `${at} ${line}`)),
    );
    return told;
  }

  /** The number that a cell begins with; NaN if it begins with none. */
  function number(cell) {
    const text = words(cell).replace(/[,\u202f\u00a0](?=\d{3})/g, "").replace(/^[~≈×<>≤≥]\s*/, "").replace("\u2212", "-");
    return parseFloat(/^[-+]?(\d|\.\d)/.test(text) ? text : "");
  }

  /** The number that a cell is, but for brackets after it; NaN of one with a unit, or of several. */
  const alone = (cell) => (/^[-+\u2212]?[\d.,]+(e[-+]?\d+)?\s*(\([^)]*\))?$/.test(words(cell)) ? number(cell) : NaN);

  /** A table whose rows can be moved: one head, one body, no cell over several rows. */
  function plain(table) {
    return (
      table.tHead?.rows.length === 1 && table.tBodies.length === 1 &&
      !table.querySelector("tbody [rowspan], [colspan]:not([colspan='1'])")
    );
  }

  /** What a table's width is: of many columns, which stand closer; with sentences in the last one. */
  function widths(table) {
    const columns = table.tHead.rows[0].cells.length;
    const wordy = columns > 1 && [...table.tBodies[0].rows].some((row) => words(row.cells[columns - 1] ?? row).length > SENTENCE);
    return [columns > 9 ? "many" : "", wordy ? "wordy" : ""].filter(Boolean);
  }

  // ------------------------------------------------------------------- sort
  function startSort(table) {
    const body = table.tBodies[0];
    const given = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (!words(head) || given.length < 3) return;
      const cells = given.map((row) => row.cells[column]).filter((cell) => cell && /[\p{L}\p{N}]/u.test(words(cell)));
      const numeric = cells.length > 0 && cells.every((cell) => !Number.isNaN(number(cell)));
      const orders = numeric ? ["descending", "ascending", ""] : ["ascending", "descending", ""];
      const button = make("button", { type: "button", class: "sort" });
      button.append(...head.childNodes);
      head.append(button);
      head.scope = "col";
      button.addEventListener("click", () => {
        const order = orders[(orders.indexOf(head.getAttribute("aria-sort") ?? "") + 1) % 3];
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        if (order) head.setAttribute("aria-sort", order);
        body.append(...sorted(given, column, numeric, order));
      });
    });
  }

  /** Rows in a new order; those without a value stay last, whichever way. */
  function sorted(rows, column, numeric, order) {
    if (!order) return rows;
    const keyed = rows.map((row) => {
      const cell = row.cells[column];
      const text = cell ? words(cell) : "";
      return { row, key: numeric ? number(cell) : text, empty: numeric ? Number.isNaN(number(cell)) : !/[\p{L}\p{N}]/u.test(text) };
    });
    const sign = order === "ascending" ? 1 : -1;
    keyed.sort((a, b) => {
      if (a.empty || b.empty) return a.empty - b.empty;
      return sign * (numeric ? a.key - b.key : a.key.localeCompare(b.key, document.documentElement.lang, { numeric: true }));
    });
    return keyed.map((each) => each.row);
  }

  // ----------------------------------------------------------------- filter
  function startFilter(tables, wanted, place) {
    const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
    const groups = new Map(); // a name's rows, in all tables
    rows.forEach((row) => groups.set(nameOf(row), [...(groups.get(nameOf(row)) ?? []), row]));
    const texts = new Map([...groups].map(([name, own]) => [name, own.map(words).join(" ").toLowerCase()]));
    const input = make("input", { type: "search", autocomplete: "off", spellcheck: false });
    const count = make("p", { class: "table-count", role: "status" });
    const clear = make("button", { type: "button", class: "table-clear", hidden: true }, "Show all");
    const selects = wanted.map((title) => select(tables, title)).filter(Boolean);
    const labelled = (text, field) => make("label", {}, make("span", {}, text), field);
    const tools = make(
      "div", { class: "table-tools", role: "group", "aria-label": "Which rows of the table are shown" },
      labelled("Filter", input), ...selects.map((each) => labelled(each.title, each.field)), clear, count,
    );
    function show() {
      const query = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      groups.forEach((own, name) => {
        const fits = query.every((word) => texts.get(name).includes(word)) &&
          selects.every(({ field, values }) => !field.value || values.get(name) === field.value);
        own.forEach((row) => (row.hidden = !fits));
        shown += fits;
      });
      clear.hidden = !query.length && selects.every(({ field }) => !field.value);
      count.textContent = shown === groups.size ? `${shown} rows` : `${shown} of ${groups.size} rows`;
    }
    input.addEventListener("input", show);
    selects.forEach(({ field }) => field.addEventListener("change", show));
    clear.addEventListener("click", () => {
      input.value = "";
      selects.forEach(({ field }) => (field.value = ""));
      show();
      input.focus();
    });
    show();
    place(tools);
  }

  /** A field that chooses among the values of a column, found by its title. */
  function select(tables, title) {
    for (const table of tables) {
      const column = [...table.tHead.rows[0].cells].findIndex((head) => words(head) === title);
      if (column < 0) continue;
      const values = new Map([...table.tBodies[0].rows].map((row) => [nameOf(row), words(row.cells[column])]));
      const choices = [...new Set(values.values())].sort((a, b) => a.localeCompare(b, undefined, { numeric: true }));
      const field = make("select", {}, ...["", ...choices].map((each) => make("option", { value: each }, each || "all")));
      return { title, field, values };
    }
    return null;
  }

  // ---------------------------------------------------------------- compare
  function startCompare(tables, alike, place) {
    const chosen = []; // names, in the order in which they were chosen
    const boxes = [];
    const said = make("span", { role: "status" });
    const go = make("button", { type: "button" }, "Side by side");
    const clear = make("button", { type: "button" }, "Clear");
    const bar = make("div", { class: "compare-bar", hidden: true }, said, go, clear);
    const panel = make("section", { class: "comparison", "aria-label": "Side by side", tabIndex: -1, hidden: true });
    tables.forEach((table) =>
      [...table.tBodies[0].rows].forEach((row) => {
        const name = words(row.cells[0]);
        const box = make("input", { type: "checkbox", class: "compare-pick", "aria-label": `Compare ${name}` });
        box.addEventListener("change", () => choose(name, box.checked));
        boxes.push([name, box]);
        row.cells[0].prepend(box);
      }),
    );
    function choose(name, on) {
      if (on) chosen.push(name);
      else chosen.splice(chosen.indexOf(name), 1);
      update();
    }
    function update() {
      const full = chosen.length >= MOST;
      boxes.forEach(([name, box]) => {
        box.checked = chosen.includes(name);
        box.disabled = full && !box.checked;
      });
      bar.hidden = !chosen.length;
      go.hidden = panel.hidden = chosen.length < 2;
      const more = chosen.length < 2 ? ": choose one more" : full ? ` (${MOST} at most)` : "";
      said.textContent = chosen.length ? `${chosen.join(", ")}${more}` : "Nothing is compared";
      panel.replaceChildren(...(panel.hidden ? [] : [beside(tables, chosen, alike, drop)]));
      markScrollBoxes(panel);
    }
    function drop(name) {
      choose(name, false);
      const next = panel.hidden ? boxes.find(([each]) => each === name)[1] : panel;
      next.focus();
    }
    go.addEventListener("click", () => {
      panel.scrollIntoView({ block: "center" });
      panel.focus({ preventScroll: true });
    });
    clear.addEventListener("click", () => {
      chosen.length = 0;
      update();
      boxes[0]?.[1].focus({ preventScroll: true });
    });
    place(bar, panel);
  }

  /** What tells one of several tables: the name of its tab, or its caption. */
  function titleOf(table) {
    const tab = document.getElementById(table.closest(".tab-pane")?.getAttribute("aria-labelledby"));
    const named = tab ?? table.caption ?? table.closest("figure")?.querySelector("figcaption");
    return named ? words(named) : "";
  }

  /** The chosen rows as columns of one table; a number tells how many times the first's it is. */
  function beside(tables, chosen, alike, drop) {
    const head = make("tr", {}, make("td"));
    chosen.forEach((name) => {
      const close = make("button", { type: "button", class: "compare-drop", "aria-label": `Take ${name} out` }, "×");
      close.addEventListener("click", () => drop(name));
      head.append(make("th", { scope: "col" }, name, close));
    });
    const body = make("tbody");
    tables.forEach((table) => {
      const rows = chosen.map((name) => [...table.tBodies[0].rows].find((row) => words(row.cells[0]) === name));
      const title = tables.length > 1 && titleOf(table);
      const lines = [...table.tHead.rows[0].cells].slice(1).map((column, index) => {
        const cells = rows.map((row) => row?.cells[index + 1]);
        if (!cells.some((cell) => cell && /[\p{L}\p{N}]/u.test(words(cell)))) return "";
        const line = make("tr", {}, make("th", { scope: "row" }, words(column)));
        const first = cells[0] ? alone(cells[0]) : NaN;
        cells.forEach((cell, place) => {
          const copy = make("td", {}, ...(cell ? [...cell.cloneNode(true).childNodes] : ["–"]));
          const times = cell && first ? alone(cell) / first : NaN;
          const said = times.toLocaleString("en", { maximumSignificantDigits: 2 });
          if (place && Number.isFinite(times) && said !== "1" && !alike.includes(words(column))) {
            copy.append(make("small", { class: "times" }, ` ×${said}`));
          }
          line.append(copy);
        });
        return line;
      }).filter(Boolean);
      if (title && lines.length) body.append(make("tr", {}, make("th", { scope: "rowgroup", class: "part", colSpan: chosen.length + 1 }, title)));
      body.append(...lines);
    });
    const table = make("table", { class: "table" }, make("thead", {}, head), body);
    return make("div", { class: "table-scroll" }, table);
  }

  all(`main :is(${MARKS})`).forEach((mark) => {
    if (mark.parentElement.closest(MARKS)) return; // the outermost counts
    const own = mark.tagName === "TABLE";
    const tables = (own ? [mark] : all("table", mark)).filter(plain);
    if (!tables.length) return;
    const has = (name) => mark.classList.contains(name);
    const wanted = (mark.dataset.filter ?? "").split(",").map((each) => each.trim()).filter(Boolean);
    const host = own ? (mark.closest("figure") ?? mark.closest(".table-scroll") ?? mark) : mark;
    tables.forEach((table) => table.classList.add("live", ...widths(table)));
    if (has("sortable")) tables.forEach(startSort);
    const told = nameRows(tables);
    const before = (...those) => (own ? host.before(...those) : host.prepend(...those));
    const after = (...those) => (own ? host.after(...those) : host.append(...those));
    if (has("filterable")) startFilter(tables, wanted, before);
    if (has("comparable") && told) startCompare(tables, wanted, after);
  });
})();
