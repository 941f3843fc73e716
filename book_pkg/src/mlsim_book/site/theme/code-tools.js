// The menu for a page's code.
"use strict";

(() => {
  const menu = document.querySelector(".code-tools");
  if (!menu) return;
  const on = (id, act) =>
    document.getElementById(id)?.addEventListener("click", () => {
      act();
      menu.open = false;
    });
  const fold = (open) => all("main details.code-fold").forEach((each) => (each.open = open));
  on("quarto-show-all-code", () => fold(true));
  on("quarto-hide-all-code", () => fold(false));
  on("quarto-view-source", () => document.getElementById("quarto-embedded-source-code-modal")?.showModal());
  document.addEventListener("click", ({ target }) => {
    if (!menu.contains(target)) menu.open = false;
  });
  menu.addEventListener("keydown", ({ key }) => {
    if (key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
})();
