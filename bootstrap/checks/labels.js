/**
 * The labels of invariants (`PARTITION-1`): a module's header defines them, one a line, and comments cite them. A label has one
 * definition in the repository, so a citation leads to one place; what is cited is defined. `P1` and the like are the rules of
 * docs/protocols.md, which the tests of the documents look at.
 */
import { lineAt } from './source-files.js';

const COMMENT = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*/gm;
const DEFINITION = /^ *\* +([A-Z]{1,3}\d{1,2}|[A-Z]+(?:-[A-Z]+)*-\d{1,2})[.:]? +(?=[A-Z`"'])/gm;
const LABEL = /^[A-Z]{3,}(-[A-Z]+)*-\d+$/;
const CITATION = /\b[A-Z]{3,}(?:-[A-Z]+)*-\d{1,2}\b/g;

/**
 * @param files `{ path, text }` of each source file.
 * @returns lines `path:line: what is wrong`.
 */
export function checkLabels(files) {
  const findings = [];
  const defined = new Map();
  for (const { path, text } of files) {
    for (const { label, index } of definitionsOf(text)) {
      const place = `${path}:${lineAt(text, index)}`;
      const first = defined.get(label);
      if (!LABEL.test(label))
        findings.push(
          `${place}: the label ${label} says not whose it is: write a prefix of the module in capitals, a hyphen and a number`,
        );
      else if (first) findings.push(`${place}: the label ${label} stands at ${first} too: give it another prefix`);
      else defined.set(label, place);
    }
  }
  const prefixes = new Set([...defined.keys()].map(prefixOf));
  for (const { path, text } of files) {
    for (const { label, index } of citationsOf(text)) {
      if (prefixes.has(prefixOf(label)) && !defined.has(label))
        findings.push(`${path}:${lineAt(text, index)}: cites ${label}, which no header defines`);
    }
  }
  return findings;
}

/** What the first block comment of a file defines. */
function definitionsOf(text) {
  const header = /^(?:#![^\n]*\n)?\s*\/\*\*[\s\S]*?\*\//.exec(text)?.[0] ?? '';
  return [...header.matchAll(DEFINITION)].map((match) => ({ label: match[1], index: match.index }));
}

function citationsOf(text) {
  return [...text.matchAll(COMMENT)].flatMap((comment) =>
    [...comment[0].matchAll(CITATION)].map((match) => ({ label: match[0], index: comment.index + match.index })),
  );
}

const prefixOf = (label) => label.replace(/-\d+$/, '');
