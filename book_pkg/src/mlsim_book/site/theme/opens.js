// Numbers that open: click, Enter or Space shows what is behind one in a card beside it.
(function () {
  const source = document.getElementById("opens-cards")?.dataset.from;
  const numbers = all(".opens[data-opens]").filter(
    (each) => !each.closest("a, button, summary, h1, h2, h3, h4, h5, h6, [role=button]"),
  );
  if (!source || !numbers.length) return;

  let cards = null; // by id, when they have come

  /** What the numbers open to is a script beside the page, which from disk loads as well. */
  function load() {
    cards ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = source;
      script.onload = () => resolve(window.bookCards);
      script.onerror = () => {
        cards = null; // the next number tries again
        script.remove();
        reject(new Error("This could not be loaded. Is the network there?"));
      };
      document.head.append(script);
    });
    return cards;
  }

  const card = document.createElement("div");
  Object.assign(card, { id: "opens-card", className: "card", hidden: true, tabIndex: -1 });
  card.setAttribute("role", "dialog");
  card.setAttribute("aria-labelledby", "opens-card-title");
  card.innerHTML =
    '<div class="card-head"><span class="card-title" id="opens-card-title"></span>' +
    '<button class="card-close" type="button" aria-label="Close">×</button></div><div class="card-body"></div>';
  const [title, body] = [card.querySelector(".card-title"), card.querySelector(".card-body")];
  document.body.append(card);
  let opener = null;

  /** Below the number where there is room, else above it, and never out of the window. */
  function place() {
    if (!opener) return;
    const lines = opener.getClientRects(); // a number may be broken over two lines
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
    const number = opener;
    opener = null;
    card.hidden = true;
    number.setAttribute("aria-expanded", "false");
    if (focus) number.focus({ preventScroll: true });
  }

  async function content(number) {
    try {
      const found = (await load())[number.dataset.opens];
      return found ?? "<p>The page is older than its numbers: load it again.</p>";
    } catch (error) {
      return `<p>${error.message}</p>`;
    }
  }

  async function open(number) {
    close({ focus: false });
    opener = number;
    const html = await content(number);
    if (opener !== number) return; // another was asked for meanwhile, or none
    title.textContent = number.textContent;
    body.innerHTML = html;
    card.hidden = false;
    card.scrollTop = 0;
    number.setAttribute("aria-expanded", "true");
    markScrollBoxes(body);
    place();
    card.focus({ preventScroll: true });
  }

  numbers.forEach((number) => {
    number.tabIndex = 0;
    for (const [name, value] of Object.entries({
      role: "button", "aria-haspopup": "dialog", "aria-expanded": "false", "aria-controls": card.id,
      title: "Show where this number comes from",
    })) number.setAttribute(name, value);
    for (const event of ["pointerenter", "focus"]) {
      number.addEventListener(event, () => load().catch(() => {}), { once: true });
    }
  });

  // By the document, so that a copy of a number, as in a comparison of rows, opens as well.
  const toggle = (number) => (opener === number ? close() : open(number));
  const numberOf = (event) => event.target.closest?.(".opens[data-opens][role=button]");
  document.addEventListener("click", (event) => {
    if (numberOf(event)) toggle(numberOf(event));
  });
  document.addEventListener("keydown", (event) => {
    if (!numberOf(event) || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    toggle(numberOf(event));
  });

  card.querySelector(".card-close").addEventListener("click", () => close());
  card.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    // The card stands at the end of the page: leaving it by Tab leads back to its number.
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
})();
