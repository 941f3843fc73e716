// Search: a dialog over the book's index, which is loaded when it opens.
(function () {
  const dialog = document.getElementById("search");
  const input = document.getElementById("search-input");
  const list = document.getElementById("search-results");
  const status = document.getElementById("search-status");
  const base = new URL(document.body.dataset.base, location.href);
  let engine = null;
  let turn = 0;
  let chosen = -1;

  /** The index: a plain script, so that it loads from disk, too. */
  function load() {
    engine ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL("site_libs/search/index.js", base);
      script.onload = () => resolve(window.bookSearch);
      script.onerror = () => {
        engine = null; // the next try may succeed
        reject(new Error("The search could not be loaded. Try again."));
      };
      document.head.append(script);
    });
    return engine;
  }

  function choose(index) {
    const options = list.querySelectorAll("[role=option]");
    if (!options.length) return;
    chosen = (index + options.length) % options.length;
    options.forEach((each, i) => each.setAttribute("aria-selected", String(i === chosen)));
    options[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[chosen].id);
  }

  /** Fill an element with text whose words are marked. */
  function fill(element, pieces) {
    element.append(
      ...pieces.map(([text, marked]) => {
        if (!marked) return text;
        const mark = document.createElement("mark");
        mark.textContent = text;
        return mark;
      }),
    );
  }

  /** What is found, in words. */
  function said({ count, all, results, meant, near }, words) {
    if (!count) {
      const nothing = `Nothing found for “${words}”`;
      return near.length ? `${nothing}. Words that are spelled nearly so:` : `${nothing}. Is there another word for it?`;
    }
    const number = count === 1 ? "1 page" : `${count} pages`;
    const some = all ? "" : " with some of these words";
    const best = results.length < count ? `, the best ${results.length} shown` : "";
    return number + some + (meant.length ? ` for “${meant.join(" ")}”` : "") + best;
  }

  /** An option of the list: of a page, or of a word to search for. */
  function option(index, ...parts) {
    const item = document.createElement("li");
    item.setAttribute("role", "presentation"); // the link is the option: none may be in another
    const link = document.createElement("a");
    link.id = `search-result-${index}`;
    link.setAttribute("role", "option");
    link.setAttribute("aria-selected", "false");
    link.tabIndex = -1;
    link.append(...parts.map(([name, pieces]) => {
      const part = document.createElement("span");
      part.className = name;
      fill(part, pieces);
      return part;
    }));
    item.append(link);
    return [item, link];
  }

  function page(each, index) {
    const title = each.title === each.page ? "" : each.page;
    const [item, link] = option(index,
      ["result-title", each.marked], ["result-page", [[title, false]]], ["result-text", each.excerpt]);
    link.href = new URL(each.href, base).href;
    link.addEventListener("click", () => dialog.close());
    return item;
  }

  function word(each, index) {
    const [item, link] = option(index, ["result-title", [[each, false]]]);
    link.addEventListener("click", () => {
      input.value = each;
      search();
      input.focus();
    });
    return item;
  }

  function show(answer, words) {
    list.replaceChildren(...answer.results.map(page), ...answer.near.map(word));
    input.setAttribute("aria-expanded", String(list.children.length > 0));
    input.removeAttribute("aria-activedescendant");
    status.textContent = words ? said(answer, words) : "";
    chosen = -1;
    if (list.children.length) choose(0);
  }

  async function search() {
    const words = input.value.trim();
    const mine = ++turn;
    if (!words) return show({ results: [], near: [] }, "");
    try {
      const answer = await (await load()).search(input.value);
      if (mine === turn) show(answer, words);
    } catch (error) {
      if (mine === turn) status.textContent = error.message;
    }
  }

  function open() {
    dialog.showModal();
    input.select();
    load().catch((error) => (status.textContent = error.message));
  }

  document.querySelectorAll(".search-open").forEach((each) => each.addEventListener("click", open));
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    const slash = event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
    const control = event.key === "k" && (event.ctrlKey || event.metaKey);
    if ((slash || control) && !dialog.open) {
      event.preventDefault();
      open();
    }
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  let timer = 0;
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      event.preventDefault();
      list.querySelector("a[aria-selected=true]")?.click();
    }
  });
})();
