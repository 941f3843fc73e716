// Notes in the margin rise from behind their block to the line that they comment on.
// Without a script they stand right below it, which is as readable.
"use strict";

(() => {
  // what needs the margin itself
  const WIDE = "[class*=column-page], [class*=column-screen], .margin-caption, .page-navigation";
  const notes = all("main .column-margin.column-container, main .margin-caption");

  /** The line where a container's first note is called for, or the top of its block. */
  function line(container) {
    const first = container.firstElementChild;
    const mark = first?.id && document.querySelector(`main [href$="#${CSS.escape(first.id)}"]`);
    const block = container.previousElementSibling;
    const taken = block?.matches(WIDE) || block?.querySelector(WIDE);
    return ((!taken && (mark || block)) || container).getBoundingClientRect().top;
  }

  function place() {
    notes.forEach((each) => (each.style.marginTop = each.style.transform = ""));
    let foot = -Infinity; // of what stands in the margin so far
    for (const each of notes) {
      const { float, position, marginTop } = getComputedStyle(each);
      const at = each.getBoundingClientRect().top;
      if (float === "right") {
        const by = Math.max(Math.min(at, line(each)), foot + 12) - at;
        if (by) each.style.marginTop = `${parseFloat(marginTop) + by}px`;
      } else if (position === "absolute" && at < foot + 12) {
        each.style.transform = `translateY(${foot + 12 - at}px)`;
      } else if (position !== "absolute") {
        continue;
      }
      foot = Math.max(foot, each.getBoundingClientRect().bottom);
    }
  }

  if (!notes.length) return;
  place();
  let wait;
  // figures load late and folds open: each changes the page's height
  new ResizeObserver(() => {
  // what needs the margin itself
  const WIDE = "[class*=column-page], [class*=column-screen], .margin-caption, .page-navigation";
    cancelAnimationFrame(wait);
    wait = requestAnimationFrame(place);
  }).observe(document.querySelector("main"));
})();
