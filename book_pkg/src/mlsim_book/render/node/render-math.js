// Typeset formulas: a JSON request on stdin, a JSON list of {html, error} on stdout.
"use strict";
const { readFileSync } = require("node:fs");

const request = JSON.parse(readFileSync(0, "utf8"));
const katex = require(request.katex);

function typeset({ tex, display }) {
  const options = {
    displayMode: display,
    output: "htmlAndMathml",
    throwOnError: true,
    strict: "ignore",
    trust: false,
    macros: { ...request.macros }, // a fresh copy: \gdef must not leak into the next formula
  };
  try {
    // KaTeX 0.19 writes the path of a tall floor bracket with one letter too many.
    return { html: katex.renderToString(tex, options).replaceAll("MM319", "M319") };
  } catch (error) {
    return { html: "", error: String(error.message || error).replace(/^KaTeX parse error: /, "") };
  }
}

process.stdout.write(JSON.stringify(request.formulas.map(typeset)));
