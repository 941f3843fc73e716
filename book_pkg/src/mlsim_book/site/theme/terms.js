// Terms of the glossary: pointing at one, or reaching it by key, tells its definition; a tap, a
// click or Enter opens a card, which says where it is explained. The glossary itself has a filter.
(function () {
  const links = all("a.term[data-definition]");
  if (!links.length) return;

  const hint = document.createElement("div");
  Object.assign(hint, { id: "term-hint", className: "term-hint", hidden: true });
  hint.setAttribute("role", "tooltip");
  document.body.append(hint);
  let shown = null;
  let timer = 0;

  function show(link) {
    clearTimeout(timer);
    hide();
    shown = link;
    const { definition, place } = link.dataset;
    hint.textContent = place ? `${definition} Explained in ${place}.` : definition;
    hint.hidden = false;
    link.setAttribute("aria-describedby", hint.id);
    const line = link.getClientRects()[0];
    const room = document.documentElement.clientWidth - hint.offsetWidth - 16;
    const below = line.top < hint.offsetHeight + 6;
    hint.style.left = `${scrollX + Math.max(16, Math.min(line.left, room))}px`;
    hint.style.top = `${scrollY + (below ? line.bottom + 6 : line.top - hint.offsetHeight - 6)}px`;
  }

  /** What the card tells: the definition, and where to read more. */
  function content(link) {
    const meaning = document.createElement("p");
    meaning.textContent = link.dataset.definition;
    const more = document.createElement("p");
    more.className = "term-explained";
    const to = (href, text) => Object.assign(document.createElement("a"), { href, textContent: text });
    if (link.dataset.place) more.append("Explained in ", to(link.dataset.at, link.dataset.place), " · ");
    more.append(to(link.href, "Glossary"));
    return [meaning, more];
  }

  function hide() {
    clearTimeout(timer);
    if (!shown) return;
    shown.removeAttribute("aria-describedby");
    shown = null;
    hint.hidden = true;
  }

  // A moment's delay, so that the pointer can move onto the hint and select from it.
  const soon = (action, delay) => {
    clearTimeout(timer);
    timer = setTimeout(action, delay);
  };
  links.forEach((link) => {
    link.addEventListener("pointerenter", (event) => {
      if (event.pointerType === "mouse") soon(() => show(link), 120);
    });
    link.addEventListener("pointerleave", () => soon(hide, 200));
    // a tap focuses too, but opens the card: only focus by key shows the hint
    link.addEventListener("focus", () => link.matches(":focus-visible") && show(link));
    link.addEventListener("blur", hide);
    bookCard.belongs(link);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return; // to a tab of its own
      event.preventDefault();
      hide();
      bookCard.toggle(link, link.dataset.term, () => content(link));
    });
  });
  hint.addEventListener("pointerenter", () => clearTimeout(timer));
  hint.addEventListener("pointerleave", () => soon(hide, 200));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  addEventListener("resize", hide);
})();

(function () {
  const entries = all(".glossary-entries > .glossary-entry");
  if (!entries.length) return;
  const box = document.createElement("div");
  box.className = "glossary-filter";
  box.innerHTML =
    '<label>Filter <input type="search" autocomplete="off" spellcheck="false"></label> <span role="status"></span>';
  entries[0].parentElement.before(box);
  const [input, status] = [box.querySelector("input"), box.querySelector("[role=status]")];
  const texts = entries.map((each) => [each.textContent, each.querySelector(".term-entry")?.dataset.also].join(" ").toLowerCase());
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = entries.filter((each, at) => {
      each.hidden = !words.every((word) => texts[at].includes(word));
      return !each.hidden;
    });
    status.textContent = words.length ? `${shown.length} of ${entries.length}` : "";
  });
})();
