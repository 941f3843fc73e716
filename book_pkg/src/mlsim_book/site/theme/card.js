// The card that opens beside a number or a term, on a phone a sheet at the bottom; one at a time.
const bookCard = (function () {
  const card = document.createElement("div");
  Object.assign(card, { id: "opens-card", className: "card", hidden: true, tabIndex: -1 });
  card.setAttribute("role", "dialog");
  card.setAttribute("aria-labelledby", "opens-card-title");
  card.innerHTML =
    '<div class="card-head"><span class="card-title" id="opens-card-title"></span>' +
    '<button class="card-close" type="button" aria-label="Close">×</button></div><div class="card-body"></div>';
  const [title, body] = [card.querySelector(".card-title"), card.querySelector(".card-body")];
  let opener = null;

  /** Below the opener where there is room, else above it, and never out of the window. */
  function place() {
    if (!opener) return;
    const lines = opener.getClientRects(); // it may be broken over two lines
    const [first, last] = [lines[0], lines[lines.length - 1]];
    if (matchMedia("(max-width: 599px)").matches) {
      // the sheet at the bottom may not cover what it explains
      scrollBy(0, Math.max(0, last.bottom + 16 - (innerHeight - card.offsetHeight)));
      return;
    }
    const room = document.documentElement.clientWidth - card.offsetWidth - 16;
    const below = last.bottom + 8 + card.offsetHeight <= innerHeight || first.top < card.offsetHeight + 8;
    const top = below ? last.bottom + 8 : first.top - card.offsetHeight - 8;
    card.style.left = `${scrollX + Math.max(16, Math.min(last.left - 16, room))}px`;
    card.style.top = `${scrollY + top}px`;
  }

  function close({ focus = true } = {}) {
    if (!opener) return;
    const was = opener;
    opener = null;
    card.hidden = true;
    was.setAttribute("aria-expanded", "false");
    if (focus) was.focus({ preventScroll: true });
  }

  async function open(element, head, content) {
    close({ focus: false });
    opener = element;
    const found = await content();
    if (opener !== element) return; // another was asked for meanwhile, or none
    title.textContent = head;
    if (typeof found === "string") body.innerHTML = found;
    else body.replaceChildren(...found);
    card.hidden = false;
    card.scrollTop = 0;
    element.setAttribute("aria-expanded", "true");
    markScrollBoxes(body);
    place();
    card.focus({ preventScroll: true });
  }

  card.querySelector(".card-close").addEventListener("click", () => close());
  card.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    // The card stands at the end of the page: leaving it by Tab leads back to what opened it.
    const stops = all("a[href], button, [tabindex='0']", card);
    const at = stops.indexOf(document.activeElement);
    if (event.shiftKey ? at <= 0 : at === stops.length - 1) {
      event.preventDefault();
      close();
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && opener) close();
  });
  document.addEventListener("click", (event) => {
    if (!opener || opener.contains(event.target) || card.contains(event.target)) return;
    // what was clicked keeps the focus if it is there to be focused
    close({ focus: !event.target.closest("a[href], button, input, summary, [tabindex='0']") });
  });
  addEventListener("resize", place);
  addEventListener("hashchange", () => close({ focus: false }));

  return {
    /** Say of an element that it opens the card. */
    belongs(element) {
      if (!card.isConnected) document.body.append(card);
      const marks = { "aria-haspopup": "dialog", "aria-expanded": "false", "aria-controls": card.id };
      for (const [name, value] of Object.entries(marks)) element.setAttribute(name, value);
    },
    /** Open the card for an element, or close it; `content` gives HTML or nodes, maybe later. */
    toggle: (element, head, content) => (opener === element ? close() : open(element, head, content)),
  };
})();
