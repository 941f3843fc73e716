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
    return { html: katex.renderToString(tex, options) };
  } catch (error) {
    return { html: "", error: String(error.message || error).replace(/^KaTeX parse error: /, "") };
  }
}

process.stdout.write(JSON.stringify(request.formulas.map(typeset)));
