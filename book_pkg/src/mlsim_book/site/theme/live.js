// Start the figures of a page that move, each over its still one; that one stays where it can't.
"use strict";

document.querySelectorAll(".live-figure").forEach((place) => {
  const entry = globalThis.bookModules?.[place.dataset.modules.split(" ").at(-1)];
  if (!entry) return;
  const box = document.createElement("div");
  box.className = "live-box";
  place.append(box);
  place.classList.add("live-mounted");
  try {
    entry.mount(box, JSON.parse(place.querySelector("script").textContent));
  } catch (error) {
    place.classList.remove("live-mounted");
    box.remove();
    console.error(error);
  }
});
