// Search without a server, in the zip only: looks for words in `bookPassages`, and
// answers as Pagefind does. A passage must hold every word, or a word that begins so.
(function () {
  /** A sign without accents and capitals; as long as it was, so that places agree. */
  function fold(sign) {
    const folded = sign.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();
    return folded.length === sign.length ? folded : sign;
  }
  const plain = (text) => /^[\0-\x7f]*$/.test(text)
    ? text.toLowerCase()
    : Array.from(text.normalize("NFC"), fold).join("");
  const passages = window.bookPassages.map(([url, page, title, text]) => ({
    url, page, title, text: text.normalize("NFC"), head: plain(title), body: plain(text),
  }));
  const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
  const begins = (word) => new RegExp(`(?<![\\p{L}\\p{N}])${word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}`, "gu");

  function score(passage, patterns) {
    let sum = 0;
    for (const pattern of patterns) {
      const inTitle = (passage.head.match(pattern) || []).length;
      const inText = (passage.body.match(pattern) || []).length;
      if (!inTitle && !inText) return 0;
      sum += 10 * inTitle + (3 * inText) / (inText + 2);
    }
    return sum;
  }

  function excerpt(passage, patterns) {
    const at = patterns.map((pattern) => passage.body.search(pattern)).find((place) => place >= 0) ?? 0;
    const start = passage.text.lastIndexOf(" ", Math.max(0, at - 60)) + 1;
    const text = passage.text.slice(start, start + 200);
    const marks = patterns.flatMap((pattern) =>
      [...plain(text).matchAll(pattern)].map((match) => [match.index, match.index + match[0].length]),
    );
    let done = 0;
    let html = "";
    for (const [from, to] of marks.sort((a, b) => a[0] - b[0])) {
      if (from < done) continue;
      html += `${escaped(text.slice(done, from))}<mark>${escaped(text.slice(from, to))}</mark>`;
      done = to;
    }
    return html + escaped(text.slice(done));
  }

  window.bookSearch = (base) => ({
    async search(words) {
      const patterns = plain(words).split(/\s+/).filter(Boolean).map(begins);
      const found = passages
        .map((passage) => ({ passage, score: score(passage, patterns) }))
        .filter((each) => each.score > 0)
        .sort((a, b) => b.score - a.score);
      const results = found.map(({ passage }) => ({
        data: async () => ({
          meta: { title: passage.page },
          sub_results: [
            { url: new URL(passage.url, base).href, title: passage.title, excerpt: excerpt(passage, patterns) },
          ],
        }),
      }));
      return { results };
    },
  });
})();
