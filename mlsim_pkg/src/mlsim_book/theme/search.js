// Search: a dialog over Pagefind's index, which is loaded with the first search.
(function () {
  const dialog = document.getElementById("search");
  const input = document.getElementById("search-input");
  const list = document.getElementById("search-results");
  const status = document.getElementById("search-status");
  const base = new URL(document.body.dataset.base, location.href);
  let engine = null;
  let turn = 0;
  let chosen = -1;

  async function load() {
    engine ??= location.protocol === "file:" ? fromDisk() : import(new URL("pagefind/pagefind.js", base));
    return engine;
  }

  /** From disk, modules don't load; the book's zip has a plain script for that. */
  function fromDisk() {
    return new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = new URL("site_libs/search-from-disk.js", base);
      script.onload = () => resolve(window.bookSearch(base));
      script.onerror = () =>
        reject(new Error("Search needs a web server: run  python -m http.server  in the book's folder."));
      document.head.append(script);
    });
  }

  function choose(index) {
    const options = list.querySelectorAll("[role=option]");
    if (!options.length) return;
    chosen = (index + options.length) % options.length;
    options.forEach((each, i) => each.setAttribute("aria-selected", String(i === chosen)));
    options[chosen].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[chosen].id);
  }

  /** A result leads to a section; a page's own hit stands for the page. */
  function entries(pages) {
    return pages.flatMap((page) =>
      page.sub_results.slice(0, 3).map((part) => ({
        url: part.url,
        page: page.meta.title,
        title: part.title,
        excerpt: part.excerpt,
      })),
    );
  }

  function show(found, words) {
    list.replaceChildren(
      ...found.map((each, index) => {
        const item = document.createElement("li");
        item.setAttribute("role", "presentation"); // the link is the option: none may be in another
        const link = document.createElement("a");
        link.id = `search-result-${index}`;
        link.setAttribute("role", "option");
        link.setAttribute("aria-selected", "false");
        link.href = each.url;
        link.tabIndex = -1;
        const title = document.createElement("span");
        title.className = "result-title";
        title.textContent = each.title;
        const page = document.createElement("span");
        page.className = "result-page";
        page.textContent = each.title === each.page ? "" : each.page;
        const text = document.createElement("span");
        text.className = "result-text";
        text.innerHTML = each.excerpt; // Pagefind escapes it and adds <mark> only
        link.append(title, page, text);
        link.addEventListener("click", () => dialog.close());
        item.append(link);
        return item;
      }),
    );
    input.setAttribute("aria-expanded", String(found.length > 0));
    input.removeAttribute("aria-activedescendant");
    status.textContent = !words ? "" : found.length ? `${found.length} results` : `Nothing found for “${words}”`;
    chosen = -1;
    if (found.length) choose(0);
  }

  async function search() {
    const words = input.value.trim();
    const mine = ++turn;
    if (!words) return show([], "");
    try {
      const pagefind = await load();
      const answer = await pagefind.search(words);
      const pages = await Promise.all(answer.results.slice(0, 8).map((each) => each.data()));
      if (mine === turn) show(entries(pages), words);
    } catch (error) {
      status.textContent = error.message;
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
