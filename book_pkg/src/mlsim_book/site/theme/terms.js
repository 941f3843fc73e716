// Terms of the glossary: pointing at one, or reaching it by key, tells its definition.
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
    hint.textContent = link.dataset.definition;
    hint.hidden = false;
    link.setAttribute("aria-describedby", hint.id);
    const line = link.getClientRects()[0];
    const room = document.documentElement.clientWidth - hint.offsetWidth - 16;
    const below = line.top < hint.offsetHeight + 6;
    hint.style.left = `${scrollX + Math.max(16, Math.min(line.left, room))}px`;
    hint.style.top = `${scrollY + (below ? line.bottom + 6 : line.top - hint.offsetHeight - 6)}px`;
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
    // a tap focuses too, but follows the link: only focus by key shows the hint
    link.addEventListener("focus", () => link.matches(":focus-visible") && show(link));
    link.addEventListener("blur", hide);
  });
  hint.addEventListener("pointerenter", () => clearTimeout(timer));
  hint.addEventListener("pointerleave", () => soon(hide, 200));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  addEventListener("resize", hide);
})();
