// Start the figures of a page that move, each over its still one; that one stays where it can't, and while
// the box has the class `live-closed`.
"use strict";

document.querySelectorAll(".live-figure").forEach((place) => {
  const entry = globalThis.bookModules?.[place.dataset.modules.split(" ").at(-1)];
  if (!entry) return;
  const box = document.createElement("div");
  box.className = "live-box";
  place.append(box);
  const stand = () => place.classList.toggle("live-opened", !box.classList.contains("live-closed"));
  try {
    entry.mount(box, JSON.parse(place.querySelector("script").textContent));
    stand();
    new MutationObserver(stand).observe(box, { attributeFilter: ["class"] });
  } catch (error) {
    box.remove();
    console.error(error);
  }
});
