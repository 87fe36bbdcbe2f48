/**
 * The title of a test is a full sentence, or the rest of one that begins with "it": it has a verb.
 *
 * A verb is told by its form, not by a dictionary: a word such as "is" or "may"; a word that ends in -s or -ed and stands where
 * no noun would ("refuses links", not "the links"); the word behind a plural ("stages run"); a few plain verbs behind a noun. That lets
 * some fragments through, and refuses hardly a sentence. What a title is given per case (`%s`, `$name`) is a noun like any other.
 */
import { codeOnly, lineAt } from './source-files.js';

const words = (text) => new Set(text.split(/\s+/).filter(Boolean));
const AUXILIARIES =
  words(`is are am was were be been has have had can cannot could may might must shall should will would do does did
  isn't aren't wasn't doesn't don't didn't can't won't needs need goes go comes come becomes lets let gets get`);
/** Plain verbs that titles with a plural subject use most. */
const PLAIN_VERBS =
  words(`ask begin carry come die end fail find follow give go hear hold keep lead leave lose make publish say see
  send stand stay take tell wait want`);
/** Behind these a word in -s or -ed belongs to a noun. */
const BEFORE_NOUNS =
  words(`a an the this that these those its his her their our your my all any every few many more most no
  other several some such two three four five six of in on at by for from to with without within under over between against about
  than as into like per before after until during across beyond among and or but only not very same new old`);
/** In front of these a plural is no subject. */
const AFTER_NOUNS =
  words(`of in on at by for from to with without within under over between against about than as into like per before
  after until during across beyond among and or but which whose whom that who when where while if because a an the its their every`);
/** Words in -s or -ed that are never verbs. */
const NO_VERBS =
  words(`its this thus plus less us yes perhaps always besides else process access address status class bus business
  success progress analysis basis red need hundred speed seed feed shed bed wed fed led`);

/** A letter and a number in front of a title or in parentheses; `P1` and the like are rules of docs/protocols.md. */
const ORPHAN = /^(?:[A-Z]\d+, )*([A-OQ-Z]\d{1,2})[:,]|\((?:[A-Z]\d+, )*([A-OQ-Z]\d{1,2})[,)]/;

/** @returns lines `path:line: what is wrong` for the titles of a test file. */
export function checkTitles(path, text) {
  return titlesOf(text).flatMap(({ title, index }) => {
    const place = `${path}:${lineAt(text, index)}: the title "${title}"`;
    const orphan = ORPHAN.exec(title);
    return [
      ...(isSentence(title) ? [] : [`${place} is no sentence: say who does what, with a verb`]),
      ...(orphan === null
        ? []
        : [`${place} cites ${orphan[1] ?? orphan[2]}, which nothing defines: cite a rule or a label`]),
    ];
  });
}

function isSentence(title) {
  const all = title
    .replace(/^(?:[A-Z]+-?\d+(?:, )?)+: /, '')
    .replaceAll(/`[^`]*`|\$\{[^}]*\}|%[a-z]|\$\w[\w.]*|"[^"]*"|'[^' ]+'/g, ' thing ')
    .split(/[^A-Za-z'’-]+/)
    .filter((word) => /[A-Za-z]/.test(word))
    .map((word) => word.toLowerCase());
  return all.some((word, at) => AUXILIARIES.has(word) || isVerbByForm(word, all[at - 1], all[at + 1]));
}

function isVerbByForm(word, before, after) {
  if (PLAIN_VERBS.has(word)) return before !== undefined && !BEFORE_NOUNS.has(before);
  if (NO_VERBS.has(word) || !/.(?:[^s']s|ed)$/.test(word)) return false;
  if (before === undefined || !BEFORE_NOUNS.has(before)) return true;
  return word.endsWith('s') && after !== undefined && !AFTER_NOUNS.has(after);
}

/** @returns `{ title, index }` of each call of `it`, `it.each(…)` and the like. */
function titlesOf(text) {
  const code = codeOnly(text);
  return [...code.matchAll(/(?<![\w.$])it(?=[.(<])/g)].flatMap(({ index }) => {
    const title = titleFrom(text, code, index + 2);
    return title === undefined ? [] : [{ title, index }];
  });
}

/** Walks over `.each`, type arguments and calls to the first call that begins with a quote. */
function titleFrom(text, code, start) {
  for (let at = start; at < code.length;) {
    if (/\s/.test(code[at])) at++;
    else if (code[at] === '.') at += /^\.\w*/.exec(code.slice(at))[0].length;
    else if (code[at] === '<') at = closing(code, at, '<', '>');
    else if (code[at] !== '(') return undefined;
    else {
      const quoted = /^\(\s*(['"`])((?:\\[\s\S]|(?!\1)[\s\S])*)\1/.exec(text.slice(at));
      if (quoted) return quoted[2].replaceAll(/\\(['"`])/g, '$1');
      at = closing(code, at, '(', ')');
    }
  }
  return undefined;
}

function closing(code, start, open, close) {
  let depth = 0;
  for (let at = start; at < code.length; at++) {
    if (code[at] === open) depth++;
    if (code[at] === close && code[at - 1] !== '=' && --depth === 0) return at + 1;
  }
  return code.length;
}
