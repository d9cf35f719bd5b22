// How the search orders pages: by the section that has the words most often and little else (BM25), and
// by the whole page. A page with some of the words is found too, below those with all of them.
(() => {
  const WEIGHTS = { heading: 5, title: 2, keyword: 5, page: 0.5, part: 0.5 };
  // What answers a question comes before what records one.
  const FACTORS = [
    [/^(decisions|project|files)\//, 0.5],
    [/^(proofs|openshift-|kubectl-scheduler-output|benchmarks|packages|releasing)/, 0.5],
    [/^(fields\/|rules|limits|comparison|traps|checking)/, 0.7],
  ];
  const MOST = 50;
  let index = null;

  // Counts by stem: of the sections, and of the pages that they are in.
  const build = ({ sections, words, keywords }) => {
    const stemmer = new Stemmer();
    const stems = new Map();
    const pages = new Map();
    const first = new Map();
    const count = (word, section, number) => {
      const stem = stemmer.stemWord(word);
      const found = stems.get(stem) || stems.set(stem, new Map()).get(stem);
      found.set(section, (found.get(section) || 0) + number);
    };
    sections.forEach(([name], section) => {
      if (!first.has(name)) first.set(name, section);
      pages.set(name, [...(pages.get(name) || []), section]);
    });
    for (const [word, counts] of Object.entries(words))
      for (let i = 0; i < counts.length; i += 2) count(word, counts[i], counts[i + 1]);
    sections.forEach(([name, , heading], section) => {
      for (const word of splitQuery(heading.toLowerCase())) count(word, section, WEIGHTS.heading);
      for (const word of splitQuery(sections[first.get(name)][2].toLowerCase()))
        count(word, section, WEIGHTS.title);
    });
    const meant = new Map(
      Object.entries(keywords).map(([name, found]) => [
        name,
        new Set(splitQuery(found.join(" ").toLowerCase()).map((word) => stemmer.stemWord(word))),
      ]),
    );
    const lengths = new Array(sections.length).fill(0);
    for (const found of stems.values()) found.forEach((number, section) => (lengths[section] += number));
    return { sections, stems, pages, lengths, meant };
  };

  // Of a word that no page has: all words that contain it.
  const countsOf = (stem) => {
    const exact = index.stems.get(stem);
    if (exact || stem.length < 3) return exact || new Map();
    const found = new Map();
    for (const [other, counts] of index.stems)
      if (other.includes(stem))
        counts.forEach((number, section) => found.set(section, (found.get(section) || 0) + WEIGHTS.part * number));
    return found;
  };

  const fit = (count, length, mean, having, all) => {
    const rare = Math.log(1 + (all - having + 0.5) / (having + 0.5));
    return (rare * count * 2.2) / (count + 1.2 * (0.55 + (0.45 * length) / mean));
  };

  window.siteRank = (stems) => {
    index = index || build(window.siteSections);
    const { sections, pages, lengths, meant } = index;
    const total = lengths.reduce((sum, length) => sum + length, 0);
    const scores = new Array(sections.length).fill(0);
    const whole = new Map();
    for (const stem of stems) {
      const counts = countsOf(stem);
      counts.forEach((number, section) => {
        scores[section] += fit(number, lengths[section], total / sections.length, counts.size, sections.length);
      });
      for (const [name, found] of meant)
        if (found.has(stem)) whole.set(name, (whole.get(name) || 0) + WEIGHTS.keyword / WEIGHTS.page);
      const having = new Set([...counts.keys()].map((section) => sections[section][0]));
      for (const name of having) {
        const own = pages.get(name);
        const number = own.reduce((sum, section) => sum + (counts.get(section) || 0), 0);
        const length = own.reduce((sum, section) => sum + lengths[section], 0);
        const score = fit(number, length, total / pages.size, having.size, pages.size);
        whole.set(name, (whole.get(name) || 0) + score);
      }
    }
    const found = [...whole].map(([name, score]) => {
      const own = pages.get(name);
      const best = own.reduce((one, other) => (scores[other] > scores[one] ? other : one));
      const factor = FACTORS.reduce((all, [pattern, each]) => (pattern.test(name) ? all * each : all), 1);
      return { name, best, first: own[0], score: factor * (scores[best] + WEIGHTS.page * score) };
    });
    return found.sort((a, b) => b.score - a.score).slice(0, MOST);
  };

  Search._performSearch = (query, searchTerms) => {
    _removeChildren(document.getElementById("search-progress"));
    const results = window.siteRank(searchTerms).map(({ name, best, first, score }) => {
      const [title, section] = [index.sections[first][2], index.sections[best]];
      return [
        name,
        best === first ? title : `${title} > ${section[2]}`,
        best === first ? "" : `#${section[1]}`,
        null,
        score,
        `${name}.md`,
        SearchResultKind.text,
      ];
    });
    return results.reverse(); // they are taken from the end
  };
})();
