(function () {
  var root = document.documentElement, kept = null;
  try { kept = localStorage.getItem("theme"); } catch (error) { /* storage may be refused */ }
  var dark = kept ? kept === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.bsTheme = dark ? "dark" : "light";
  root.classList.add("js");
})();
