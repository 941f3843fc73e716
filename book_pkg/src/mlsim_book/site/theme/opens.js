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

  async function content(number) {
    try {
      const found = (await load())[number.dataset.opens];
      return found ?? "<p>The page is older than its numbers: load it again.</p>";
    } catch (error) {
      return `<p>${error.message}</p>`;
    }
  }

  numbers.forEach((number) => {
    number.tabIndex = 0;
    number.setAttribute("role", "button");
    number.title = "Show where this number comes from";
    bookCard.belongs(number);
    for (const event of ["pointerenter", "focus"]) {
      number.addEventListener(event, () => load().catch(() => {}), { once: true });
    }
  });

  // By the document, so that a copy of a number, as in a comparison of rows, opens as well.
  const toggle = (number) => bookCard.toggle(number, number.textContent, () => content(number));
  const numberOf = (event) => event.target.closest?.(".opens[data-opens][role=button]");
  document.addEventListener("click", (event) => {
    if (numberOf(event)) toggle(numberOf(event));
  });
  document.addEventListener("keydown", (event) => {
    if (!numberOf(event) || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    toggle(numberOf(event));
  });
})();
