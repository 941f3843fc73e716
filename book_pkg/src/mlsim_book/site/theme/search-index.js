// Answers a search from the book's index, of which it loads the parts that a query needs:
// search.py says how they are made, and what a word is. No module and no
// `fetch`, so that it works from disk, too.
(function () {
  const HERE = new URL(".", document.currentScript.src);
  const SHOWN = 12; // results
  const PARTS = 4; // of the index of words that the beginning of a word may load
  const LEVELS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const ACCENTS = /[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0640\u064b-\u065f\u0670]/g;
  const SPACELESS =
    "\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3005-\\u3007\\u3040-\\u30ff\\u31f0-\\u31ff" +
    "\\u3400-\\u4dbf\\u4e00-\\u9fff\\uf900-\\ufaff\\u{20000}-\\u{3ffff}";
  const SIGN = "[\\p{L}\\p{M}\\p{N}]";
  const RUN = new RegExp(`(?:(?=${SIGN})[${SPACELESS}])+|(?:(?![${SPACELESS}])${SIGN})+`, "gu");
  const CUT = new RegExp(`^[${SPACELESS}]`, "u");
  let head = null;
  const arrived = {};
  const asked = new Map();

  const fold = (text) =>
    text.normalize("NFKD").replace(ACCENTS, "").toLowerCase().replace(/ς/g, "σ").normalize("NFC");

  /** The words of a query; of a run without spaces its pairs, of a single character itself. */
  function wordsOf(query) {
    return [...new Set((fold(query).match(RUN) || []).flatMap((run) => {
      const signs = CUT.test(run) ? [...run] : [run];
      return signs.length < 2 ? signs : signs.slice(1).map((sign, at) => signs[at] + sign);
    }))];
  }

  /** A part of the index, loaded once. */
  function part(name) {
    if (!asked.has(name)) {
      asked.set(name, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = new URL(`${name}.js`, HERE);
        script.onload = () => resolve(arrived[name]);
        script.onerror = () => {
          asked.delete(name);
          reject(new Error("A part of the search could not be loaded. Reload the page and try again."));
        };
        document.head.append(script);
      }));
    }
    return asked.get(name);
  }

  /** The last of sorted entries that starts at a place or before it. */
  function place(entries, key) {
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (entries[middle][0] <= key) low = middle + 1;
      else high = middle;
    }
    return Math.max(low - 1, 0);
  }

  /** A word with its plural, or its singular. */
  function forms(word) {
    const others = [`${word}s`, `${word}es`, word.replace(/y$/, "ies")];
    if (word.length > 3 && /[^s]s$/.test(word)) {
      others.push(word.slice(0, -1), word.replace(/es$/, ""), word.replace(/ies$/, "y"));
    }
    return CUT.test(word) || /\d$/.test(word) ? [word] : [word, ...others];
  }

  /** The pieces that hold a word (or, if `open`, a word that begins so), with their weights. */
  async function lookUp(word, open) {
    const wanted = new Set(forms(word));
    const numbers = new Set([...wanted].map((each) => place(head.words, each)));
    const first = place(head.words, word);
    const last = open ? Math.min(place(head.words, `${word}\uffff`), first + PARTS - 1) : first;
    for (let at = first; at <= last; at += 1) numbers.add(at);
    const names = [...numbers].filter((at) => at in head.words).map((at) => head.words[at][1]);
    const pieces = new Map();
    for (const text of await Promise.all(names.map(part))) {
      for (const line of text.split("\n")) {
        const [found, postings] = line.split(" ");
        const share = found === word ? 1 : wanted.has(found) ? 0.9
          : open && found.startsWith(word) ? (0.8 * word.length) / found.length : 0;
        if (!share) continue;
        let number = 0;
        for (const [, step, level] of postings.matchAll(/(\d+)([A-Za-z])/g)) {
          number += Number(step);
          const weight = share * (LEVELS.indexOf(level) + 0.5);
          pieces.set(number, Math.max(weight, pieces.get(number) || 0));
        }
      }
    }
    return { pieces, matches: (found) => wanted.has(found) || (open && found.startsWith(word)), word };
  }

  /** The sections that hold all words, or else some, the best first; each with its best piece. */
  function rank(looked) {
    const sections = new Map();
    for (const { pieces } of looked) {
      const rarity = Math.log(1 + (head.pieces - pieces.size + 0.5) / (pieces.size + 0.5));
      const best = new Map(); // of this word, by section
      for (const [number, weight] of pieces) {
        const start = head.starts[number];
        best.set(start, Math.max(rarity * weight, best.get(start) || 0));
        const section = sections.get(start) || { start, held: 0, score: 0, pieces: new Map() };
        const before = section.pieces.get(number) || { number, held: 0, score: 0 };
        section.pieces.set(number, { number, held: before.held + 1, score: before.score + rarity * weight });
        sections.set(start, section);
      }
      for (const [start, weight] of best) {
        sections.get(start).held += 1;
        sections.get(start).score += weight / 2;
      }
    }
    const better = (a, b) => b.held - a.held || b.score - a.score;
    for (const each of sections.values()) {
      [each.piece] = [...each.pieces.values()].sort(better);
      each.score += each.piece.score / 2; // words near each other tell more
    }
    const most = Math.max(0, ...[...sections.values()].map((each) => each.held));
    const found = [...sections.values()]
      .filter((each) => most < looked.length || each.held === most)
      .sort((a, b) => better(a, b) || a.start - b.start);
    return { found, all: most === looked.length };
  }

  /** Where words stand in a text: [from, to, which]. */
  function marks(text, looked) {
    return [...text.matchAll(RUN)].flatMap((match) => {
      const run = fold(match[0]);
      const at = match.index;
      if (!CUT.test(run)) {
        const which = looked.findIndex((each) => each.matches(run));
        return which < 0 ? [] : [[at, at + match[0].length, which]];
      }
      if (run.length !== match[0].length) return [];
      return looked.flatMap(({ word }, which) =>
        [...run.matchAll(word)].map((each) => [at + each.index, at + each.index + word.length, which]));
    }).sort((a, b) => a[0] - b[0]);
  }

  /** A text as pieces that are marked or not: [text, marked]. */
  function marked(text, looked, from = 0, to = text.length) {
    const pieces = [];
    let done = from;
    for (const [start, end] of marks(text, looked)) {
      if (end <= done || end > to || start < from) continue;
      const last = pieces.at(-1);
      if (last && start <= done) last[0] += text.slice(done, end); // goes on without a space
      else pieces.push([text.slice(done, start), false], [text.slice(start, end), true]);
      done = end;
    }
    return [...pieces, [text.slice(done, to), false]].filter(([each]) => each);
  }

  /** What of a text shows the most of the words, in two lines or so. */
  function excerpt(text, looked) {
    const places = marks(text, looked);
    let best = places[0];
    let most = 0;
    for (const each of places) {
      const near = places.filter(([from]) => from >= each[0] && from < each[0] + 140);
      const count = new Set(near.map(([, , which]) => which)).size;
      if (count > most) [best, most] = [each, count];
    }
    const from = Math.max(0, (best ? best[0] : 0) - 50);
    const space = text.lastIndexOf(" ", from) + 1;
    const start = from && from - space < 30 ? space : from;
    const end = Math.min(text.length, start + 210);
    const stop = text.indexOf(" ", end);
    const last = end < text.length && stop >= 0 && stop - end < 30 ? stop : end;
    const parts = marked(text, looked, start, last);
    if (start) parts.unshift(["… ", false]);
    if (last < text.length) parts.push([" …", false]);
    return parts;
  }

  async function search(query) {
    const words = wordsOf(query);
    const begun = /\S$/.test(query);
    const looked = await Promise.all(words.map(async (word, at) => {
      // "a" and "R" are words; what begins with a letter is told only where there is none
      const long = [...word].length > 1 || CUT.test(word);
      const found = await lookUp(word, begun && long && at === words.length - 1);
      return found.pieces.size ? found : lookUp(word, true);
    }));
    const { found, all } = rank(looked);
    const shown = await Promise.all(found.slice(0, SHOWN).map(async ({ piece }) => {
      const [first, name] = head.texts[place(head.texts, piece.number)];
      const [href, page, title, text] = (await part(name))[piece.number - first];
      return { href, page, title, marked: marked(title, looked), excerpt: excerpt(text, looked) };
    }));
    return { count: found.length, all, results: shown };
  }

  window.bookSearch = {
    search,
    part: (name, data) => { arrived[name] = data; },
    start(given) {
      head = given;
      head.starts = [];
      const further = new Set(head.goesOn);
      for (let at = 0; at < head.pieces; at += 1) head.starts.push(further.has(at) ? head.starts[at - 1] : at);
    },
  };
})();
