// Answers a search from the book's index, of which it loads the parts that a query needs:
// search.py says how they are made, and what a word is. No module and no
// `fetch`, so that it works from disk, too.
(function () {
  const HERE = new URL(".", document.currentScript.src);
  const SHOWN = 8; // results, one a page
  const PARTS = 4; // of the index of words that the beginning of a word may load
  const TYPED = 4; // letters: shorter words are another word too easily
  const RARE = 2; // pieces: who asks for a word in so few may have meant a common one
  const ENOUGH = 0.75; // of what the words tell, where a section has them all
  const ASKED = 6; // words that are looked up of a longer query
  const ASKS = 0.4; // what a hit in an exercise counts
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

  /** The words of a query, in order; of a run without spaces its pairs, of a single character itself. */
  function wordsOf(query) {
    return (fold(query).match(RUN) || []).flatMap((run) => {
      const signs = CUT.test(run) ? [...run] : [run];
      return signs.length < 2 ? signs : signs.slice(1).map((sign, at) => signs[at] + sign);
    });
  }

  /** A word in the singular, as far as its ending tells. */
  function singular(word) {
    if (word.length < TYPED || !/[^s]s$/.test(word)) return word;
    return word.endsWith("ies") ? word.slice(0, -3) + "y" : word.replace(/(?<=ch|sh|ss|x)es$|s$/, "");
  }

  /** What a query asks for: terms, the longest first, and words that are in none. */
  function wanted(words) {
    const found = [];
    for (let at = 0; at < words.length; at += 1) {
      let taken = 0;
      for (let count = Math.min(head.longest, words.length - at); count && !taken; count -= 1) {
        const number = head.numbers.get(words.slice(at, at + count).map(singular).join(" "));
        if (number === undefined) continue;
        found.push({ word: `~${number}`, phrases: head.terms[number].split(";").map((each) => each.split(" ")) });
        taken = count;
      }
      if (!taken) found.push({ word: words[at], last: at === words.length - 1 });
      else at += taken - 1;
    }
    const once = found.filter((each, at) => found.findIndex((one) => one.word === each.word) === at);
    // of a whole question the terms and the longest words: each loads a part of the index
    const telling = [...once].sort((a, b) => !!b.phrases - !!a.phrases || b.word.length - a.word.length).slice(0, ASKED);
    return once.filter((each) => telling.includes(each));
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
    return CUT.test(word) || /\d$/.test(word) ? [word] : [word, ...others]; // a term ends in a digit
  }

  /** The pieces that hold a word (or, if `open`, a word that begins so), with their weights. */
  async function lookUp(word, open) {
    const same = new Set(forms(word));
    const numbers = new Set([...same].map((each) => place(head.words, each)));
    const first = place(head.words, word);
    const last = open ? Math.min(place(head.words, `${word}\uffff`), first + PARTS - 1) : first;
    for (let at = first; at <= last; at += 1) numbers.add(at);
    const names = [...numbers].filter((at) => at in head.words).map((at) => head.words[at][1]);
    const pieces = new Map();
    for (const text of await Promise.all(names.map(part))) {
      for (const line of text.split("\n")) {
        const [found, postings] = line.split(" ");
        const share = found === word ? 1 : same.has(found) ? 0.9
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
    return { pieces, matches: (found) => same.has(found) || (open && found.startsWith(word)), word };
  }

  /** The best section of each page that holds all words, or else some, the best first. */
  function rank(looked) {
    const sections = new Map();
    let whole = 0;
    for (const { pieces } of looked) {
      const rarity = Math.log(1 + (head.pieces - pieces.size + 0.5) / (pieces.size + 0.5));
      const best = new Map(); // of this word, by section
      whole += rarity;
      for (const [number, weight] of pieces) {
        const start = head.starts[number];
        best.set(start, Math.max(rarity * weight, best.get(start) || 0));
        const section = sections.get(start) || { start, held: 0, share: 0, score: 0, pieces: new Map() };
        const before = section.pieces.get(number) || { number, held: 0, score: 0 };
        section.pieces.set(number, { number, held: before.held + 1, score: before.score + rarity * weight });
        sections.set(start, section);
      }
      for (const [start, weight] of best) {
        const section = sections.get(start);
        section.held += 1;
        section.share += rarity;
        section.score += weight / 2;
      }
    }
    const better = (a, b) => b.held - a.held || b.score - a.score;
    const pages = new Map();
    let most = 0;
    for (const each of sections.values()) {
      [each.piece] = [...each.pieces.values()].sort(better);
      const [page, weight] = head.pages[place(head.pages, each.start)];
      each.share /= whole;
      each.score += each.piece.score / 2; // words near each other tell more
      each.score *= weight * each.share ** 2 * (head.asks.has(each.start) ? ASKS : 1);
      most = Math.max(most, each.held);
      if (!(pages.get(page)?.score >= each.score)) pages.set(page, each);
    }
    const all = most === looked.length;
    const found = [...pages.values()]
      .filter((each) => !all || each.share >= ENOUGH)
      .sort((a, b) => b.score - a.score || a.start - b.start);
    return { found, all };
  }

  /** Where words stand in a text: [from, to, which]. */
  function marks(text, looked) {
    const runs = [...text.matchAll(RUN)].map((match) => [match.index, match.index + match[0].length, fold(match[0])]);
    const terms = looked.flatMap(({ phrases }, which) => (phrases || []).map((phrase) => [phrase, which]));
    const singulars = terms.length ? runs.map(([, , run]) => singular(run)) : [];
    return runs.flatMap(([from, to, run], at) => {
      const [phrase, of] = terms.find(([words]) => words.every((word, n) => singulars[at + n] === word)) || [];
      if (phrase) return [[from, runs[at + phrase.length - 1][1], of]];
      if (!CUT.test(run)) {
        const which = looked.findIndex((each) => each.matches(run));
        return which < 0 ? [] : [[from, to, which]];
      }
      if (run.length !== to - from) return [];
      return looked.flatMap(({ word }, which) =>
        [...run.matchAll(word)].map((each) => [from + each.index, from + each.index + word.length, which]));
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

  /** How many letters are missing, too many, others, or swapped. */
  function errors(one, other) {
    let [before, row] = [[], [...Array(other.length + 1).keys()]];
    for (let i = 1; i <= one.length; i += 1) {
      const next = [i];
      for (let j = 1; j <= other.length; j += 1) {
        const same = one[i - 1] === other[j - 1];
        next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (same ? 0 : 1));
        if (one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) next[j] = Math.min(next[j], before[j - 2] + 1);
      }
      [before, row] = [row, next];
    }
    return row[other.length];
  }

  /** The words that are the least from a mistyped one: the nearest, and of these the commonest, first. */
  async function near(word, most, { common = false } = {}) {
    const known = await part(head.known);
    return known.slice(0, common ? 1 : 2).join(" ").split(" ")
      .filter((each) => Math.abs(each.length - word.length) <= most)
      .map((each) => [each, errors(word, each)])
      .filter(([each, count]) => each && count <= most)
      .sort((a, b) => a[1] - b[1])
      .map(([each]) => each);
  }

  /** What is found of each word or term; what nobody wrote, as if the last word went on. */
  const lookAll = (words, begun) => Promise.all(wanted(words).map(async (each) => {
    // "a" and "R" are words; what begins with a letter is told only where there is none
    const long = [...each.word].length > 1 || CUT.test(each.word);
    const found = await lookUp(each.word, Boolean(begun && long && each.last));
    return { ...(found.pieces.size || each.phrases ? found : await lookUp(each.word, true)), phrases: each.phrases };
  }));

  /** Words of which one letter may be wrong: [what is found, what was meant in place of what]. */
  async function forgiving(words, begun) {
    const looked = await lookAll(words, begun);
    const meant = new Map();
    for (const each of looked) {
      if (each.phrases || each.word.length < TYPED || /\d/.test(each.word) || each.pieces.size > RARE) continue;
      const [best] = await near(each.word, 1, { common: each.pieces.size > 0 });
      if (best) meant.set(each.word, best);
    }
    if (!meant.size) return [looked, meant];
    const again = await lookAll(words.map((each) => meant.get(each) || each), false);
    for (const { word, pieces } of looked) { // what was typed counts as well, where it stands
      const other = meant.has(word) && again.find((each) => each.word === meant.get(word));
      if (other) for (const [number, weight] of pieces) other.pieces.set(number, Math.max(weight, other.pieces.get(number) || 0));
    }
    return [again, meant];
  }

  async function search(query) {
    const words = wordsOf(query);
    const [looked, meant] = await forgiving(words, /\S$/.test(query));
    const { found, all } = rank(looked);
    const lost = found.length ? [] : words.filter((each) => each.length >= TYPED);
    const others = await Promise.all(lost.map((each) => near(each, Math.min(3, each.length >> 1))));
    const shown = await Promise.all(found.slice(0, SHOWN).map(async ({ piece }) => {
      const [first, name] = head.texts[place(head.texts, piece.number)];
      const [href, page, title, text] = (await part(name))[piece.number - first];
      return { href, page, title, marked: marked(title, looked), excerpt: excerpt(text, looked) };
    }));
    return { count: found.length, all, results: shown, meant: [...meant.values()], near: others.flat().slice(0, 4) };
  }

  window.bookSearch = {
    search,
    part: (name, data) => { arrived[name] = data; },
    start(given) {
      head = given;
      head.starts = [];
      head.asks = new Set(head.asks);
      head.numbers = new Map(head.terms.flatMap((each, number) => each.split(";").map((one) => [one, number])));
      head.longest = Math.max(1, ...[...head.numbers.keys()].map((each) => each.split(" ").length));
      const further = new Set(head.goesOn);
      for (let at = 0; at < head.pieces; at += 1) head.starts.push(further.has(at) ? head.starts[at - 1] : at);
    },
  };
})();
