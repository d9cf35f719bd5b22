// How the search orders pages: those with the words as keywords in docs/site.yaml first; what answers
// a question comes before what records one.
const siteQuery = ` ${(new URLSearchParams(window.location.search).get("q") || "").toLowerCase()} `;
var Scorer = {
  score: ([docname, title, anchor, descr, score, filename]) => {
    if ((siteKeywords[docname] || []).some((word) => siteQuery.includes(` ${word} `))) return score + 30;
    if (/^(decisions|project|fields|files)\//.test(docname)) return score - 12;
    if (/^(proofs|openshift-|kubectl-scheduler-output|benchmarks|packages|releasing)/.test(docname)) return score - 12;
    if (/^(index|traps)$/.test(docname)) return score - 6;
    return score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
