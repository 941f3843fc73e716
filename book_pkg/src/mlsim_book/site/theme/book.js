// Everything a page does: theme, menu, folding, tabs, copying, contents. No framework.
"use strict";

const root = document.documentElement;
const all = (selector, from = document) => [...from.querySelectorAll(selector)];

function keep(key, value) {
  try {
    localStorage.setItem(key, value);
  } catch {
    /* private windows may refuse; the page works without */
  }
}

function kept(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

// ------------------------------------------------------------------- theme
function showTheme(theme) {
  root.dataset.bsTheme = theme;
  if (theme === "dark") all(".dark-content > source[srcset^=data]").forEach((each) => each.remove()); // it kept figures back
  all(".theme-toggle").forEach((each) => each.setAttribute("aria-pressed", String(theme === "dark")));
}

function startTheme() {
  showTheme(root.dataset.bsTheme);
  all(".theme-toggle").forEach((each) =>
    each.addEventListener("click", () => {
      const theme = root.dataset.bsTheme === "dark" ? "light" : "dark";
      keep("theme", theme);
      showTheme(theme);
    }),
  );
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
    if (!kept("theme")) showTheme(event.matches ? "dark" : "light");
  });
}

// -------------------------------------------------------------------- menu
function startMenu() {
  const button = document.querySelector(".menu-open");
  const sidebar = document.getElementById("quarto-sidebar");
  const show = (open) => {
    document.body.classList.toggle("menu-shown", open);
    button.setAttribute("aria-expanded", String(open));
    if (open) sidebar.querySelector("a").focus();
  };
  button.addEventListener("click", () => show(!document.body.classList.contains("menu-shown")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.body.classList.contains("menu-shown")) {
      show(false);
      button.focus();
    }
  });
  document.addEventListener("click", (event) => {
    const outside = !sidebar.contains(event.target) && !button.contains(event.target);
    if (outside && document.body.classList.contains("menu-shown")) show(false);
  });
  // what has the focus may not lie behind the menu
  sidebar.addEventListener("focusout", ({ relatedTarget: to }) => {
    if (to && to !== button && !sidebar.contains(to)) show(false);
  });
  const active = sidebar.querySelector(".active");
  if (active) sidebar.scrollTop = active.offsetTop - sidebar.clientHeight / 3;
}

// --------------------------------------------------------- folds and tabs
function startCallouts() {
  all("[data-bs-toggle=collapse]").forEach((header) => {
    const body = document.getElementById(header.getAttribute("aria-controls"));
    if (!body) return;
    const toggle = () => {
      const open = body.classList.toggle("show");
      all(`.${body.id}-contents`).forEach((each) => each.classList.toggle("show", open)); // its margin notes
      header.classList.toggle("collapsed", !open);
      header.setAttribute("aria-expanded", String(open));
    };
    header.addEventListener("click", (event) => {
      if (!event.target.closest("a")) toggle();
    });
    header.addEventListener("keydown", (event) => {
      if (event.target === header && (event.key === "Enter" || event.key === " ")) {
        event.preventDefault();
        toggle();
      }
    });
  });
}

function selectTab(tab, { focus = false, remember = true } = {}) {
  const set = tab.closest(".panel-tabset");
  const own = all("[role=tab]", set).filter((each) => each.closest(".panel-tabset") === set);
  own.forEach((each) => {
    const on = each === tab;
    each.classList.toggle("active", on);
    each.setAttribute("aria-selected", String(on));
    each.tabIndex = on ? 0 : -1;
    const pane = each.getAttribute("aria-controls");
    document.getElementById(pane).classList.toggle("active", on);
    all(`.${pane}-tab-margin-content`).forEach((note) => note.classList.toggle("collapse", !on));
  });
  if (focus) tab.focus();
  const group = set.dataset.group;
  if (!group || !remember) return;
  const name = tab.textContent.trim();
  keep(`tabset-${group}`, name);
  showGroup(group, name, set);
}

function showGroup(group, name, except) {
  all(".panel-tabset").forEach((set) => {
    if (set === except || set.dataset.group !== group) return;
    const tab = all("[role=tab]", set).find((each) => each.textContent.trim() === name);
    if (tab) selectTab(tab, { remember: false });
  });
}

function startTabs() {
  all(".panel-tabset").forEach((set) => {
    const tabs = all("[role=tab]", set).filter((each) => each.closest(".panel-tabset") === set);
    tabs.forEach((tab, index) => {
      tab.tabIndex = tab.classList.contains("active") ? 0 : -1;
      tab.addEventListener("click", (event) => {
        event.preventDefault();
        selectTab(tab);
      });
      tab.addEventListener("keydown", (event) => {
        const last = tabs.length - 1;
        const next = {
          ArrowRight: index === last ? 0 : index + 1,
          ArrowLeft: index === 0 ? last : index - 1,
          Home: 0,
          End: last,
          " ": index,
        }[event.key];
        if (next === undefined) return;
        event.preventDefault();
        selectTab(tabs[next], { focus: true });
      });
    });
    const name = set.dataset.group && kept(`tabset-${set.dataset.group}`);
    if (name) showGroup(set.dataset.group, name, null);
  });
}

/** Open whatever hides the target of a link: folds, callouts, tabs. */
function reveal(id) {
  const target = id && document.getElementById(id);
  for (let at = target; at; at = at.parentElement) {
    if (at.tagName === "DETAILS") at.open = true;
    if (at === target) at.querySelector(":scope > .callout-header.collapsed")?.click();
    if (at.classList.contains("tab-pane") && !at.classList.contains("active")) {
      selectTab(document.getElementById(at.getAttribute("aria-labelledby")), { remember: false });
    }
    if (at.classList.contains("callout-collapse") && !at.classList.contains("show")) {
      document.querySelector(`[aria-controls="${at.id}"]`).click();
    }
  }
  if (target) target.scrollIntoView();
  else if (id) {
    const elsewhere = document.querySelector("main a.elsewhere"); // where addresses of this page went
    if (elsewhere) location.replace(`${elsewhere.href.split("#")[0]}#${encodeURIComponent(id)}`);
  }
}

function startReveal() {
  const go = () => reveal(decodeURIComponent(location.hash.slice(1)));
  addEventListener("hashchange", go);
  if (location.hash) go();
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    opened.forEach((each) => (each.open = true));
  });
  addEventListener("afterprint", () => opened.forEach((each) => (each.open = false)));
}

// -------------------------------------------------------------- code, boxes
function startCopy() {
  all(".code-copy-button").forEach((button) => {
    const label = button.getAttribute("aria-label");
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code").cloneNode(true);
      all(".code-annotation-anchor", code).forEach((each) => each.remove());
      try {
        await navigator.clipboard.writeText(code.textContent.replace(/\n$/, ""));
        button.classList.add("copied");
        button.setAttribute("aria-label", "Copied");
      } catch {
        getSelection().selectAllChildren(button.parentElement.querySelector("code"));
      }
      setTimeout(() => {
        button.classList.remove("copied");
        button.setAttribute("aria-label", label);
      }, 1500);
    });
  });
}

const SCROLLS = { ".figure-scroll": "Figure", ".cell-output pre": "Output", pre: "Code", ".table-scroll": "Table", ".katex-display": "Formula" };

/** A box that scrolls has to be reachable by keyboard and have a name; one that doesn't must not be. */
function markScrollBoxes(from) {
  const boxes = all("pre, .table-scroll, .figure-scroll, .katex-display, .cell-output-display", from);
  const down = (box) => box.matches(".long") && box.scrollHeight > box.clientHeight + 1;
  const scrolling = boxes.map((box) => (down(box) ? "" : box.scrollWidth > box.clientWidth + 1 ? " sideways" : null)); // before any change
  boxes.forEach((box, index) => {
    const name = Object.keys(SCROLLS).find((selector) => box.matches(selector));
    const marks = { tabindex: "0", role: "group", "aria-label": `${SCROLLS[name] ?? "Output"}, scrolls${scrolling[index]}` };
    for (const [key, value] of Object.entries(marks)) {
      if (scrolling[index] !== null) box.setAttribute(key, value);
      else box.removeAttribute(key);
    }
  });
}

/** Boxes are measured again when the window changes, and when what hides some of them opens. */
function startScrollBoxes() {
  const main = document.querySelector("main");
  const mark = () => markScrollBoxes(main);
  addEventListener("resize", mark);
  main.addEventListener("toggle", mark, { capture: true }); // of details, which don't bubble
  main.addEventListener("click", () => requestAnimationFrame(mark)); // callouts and tabs
  document.fonts?.ready.then(mark);
  document.fonts?.addEventListener("loadingdone", mark); // a part of a font that came later
  mark();
}

// ---------------------------------------------------------------- contents
function startContents() {
  const links = all("#TOC a");
  const places = links
    .map((link) => [link, document.getElementById(decodeURIComponent(link.hash.slice(1)))])
    .filter(([, place]) => place);
  if (!places.length) return;
  let waiting = false;
  const mark = () => {
    waiting = false;
    const bottom = scrollY > 0 && innerHeight + scrollY >= document.body.scrollHeight - 2;
    const passed = places.filter(([, place]) => place.getBoundingClientRect().top < 120);
    const [current] = (bottom ? places : passed).at(-1) ?? places[0];
    links.forEach((link) => link.classList.toggle("active", link === current));
  };
  addEventListener("scroll", () => {
    if (!waiting) requestAnimationFrame(mark);
    waiting = true;
  }, { passive: true });
  mark();
}

function startAnchors() {
  all("main section[id] > :is(h2, h3, h4)").forEach((heading) => {
    const link = document.createElement("a");
    link.className = "anchorjs-link";
    link.href = `#${heading.parentElement.id}`;
    link.setAttribute("aria-label", "Link to this section");
    link.textContent = "#";
    heading.append(link);
  });
}

startTheme();
startMenu();
startCallouts();
startTabs();
startCopy();
startScrollBoxes();
startContents();
startAnchors();
startReveal();
