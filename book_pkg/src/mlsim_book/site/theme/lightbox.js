// Images over the page: the links lead to the images, so they work without a script, too.
"use strict";

(() => {
  const links = all("main a.lightbox");
  if (!links.length) return;
  const box = document.createElement("dialog");
  box.className = "lightbox-box";
  box.innerHTML = '<img alt=""><p></p><button type="button" class="tool" aria-label="Close">✕</button>';
  document.body.append(box);
  let shown = null;

  function show(link) {
    const image = link.querySelector("img");
    shown = link;
    Object.assign(box.querySelector("img"), { src: image.currentSrc || link.href, alt: image.alt });
    box.querySelector("p").textContent = [link.title, link.dataset.description].filter(Boolean).join(" – ");
    if (!box.open) box.showModal();
  }

  links.forEach((link) =>
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      show(link);
    }),
  );
  box.addEventListener("click", () => box.close());
  box.addEventListener("keydown", ({ key }) => {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!way) return;
    const group = links.filter((each) => each.dataset.gallery === shown.dataset.gallery);
    show(group[(group.indexOf(shown) + way + group.length) % group.length]);
  });
})();
