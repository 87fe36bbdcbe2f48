/** The forms in which a value may be printed, as the byte strings that are looked for in a stage's output. */

/** Shorter ones would stand in most output by chance; no secret is as short. */
const NEEDLE_BYTES_MIN = 4;
/**
 * A longer form is looked for in pieces of this length, the last one reaching back: so no comparison is long, and a part of a
 * long value is masked too.
 */
const NEEDLE_BYTES_MAX = 64;
/** At which programs break base64 into lines: `base64` and PEM. */
const BASE64_LINES = [76, 64];
/** As `xxd -p` breaks hex. */
const HEX_LINES = [60];
/** What is left behind the last whole line may be three bytes of a value: alone it would stand in most output by chance, as `3231` does. */
const LAST_LINE_MIN = 8;

/** Sorted by their bytes, each once, each of NEEDLE_BYTES_MIN to NEEDLE_BYTES_MAX bytes. */
export function needlesOf(values: Iterable<string>): Buffer[] {
  // As binary strings: a set tells them apart, and their order is that of their bytes.
  const needles = new Set<string>();
  for (const value of values) for (const form of formsOf(value)) for (const piece of piecesOf(form)) needles.add(piece);
  return [...needles].toSorted((a, b) => (a < b ? -1 : 1)).map((needle) => Buffer.from(needle, 'latin1'));
}

/** Of both, each once. Two that are sorted are merged at the cost of looking at each. */
export function mergedNeedles(one: readonly Buffer[], other: readonly Buffer[]): Buffer[] {
  const sorted = [...one, ...other].toSorted(Buffer.compare);
  return sorted.filter((needle, index) => index === 0 || !needle.equals(sorted[index - 1] as Buffer));
}

function* formsOf(value: string): Iterable<string> {
  // Whoever prints a file's content by a variable loses the line ends behind it.
  const trimmed = value.replace(/^[\r\n]+|[\r\n]+$/g, '');
  yield binary(trimmed);
  for (const line of trimmed.split(/\r?\n/)) if (line.trim().length >= NEEDLE_BYTES_MIN) yield binary(line);
  for (const escaped of escapedForms(trimmed)) yield binary(escaped);
  for (const text of new Set([value, trimmed])) {
    const bytes = Buffer.from(text, 'utf8');
    yield* base64Forms(bytes);
    const hex = bytes.toString('hex');
    for (const digits of [hex, hex.toUpperCase()]) {
      yield digits;
      yield* linesOf(digits, HEX_LINES);
    }
  }
}

/** Most values have most of these in common: each is told once. */
function escapedForms(text: string): Set<string> {
  return new Set([...urlForms(text.toWellFormed()), ...jsonForms(text)]);
}

/** Programs differ in the characters that they leave alone, and in how they write a blank. */
function* urlForms(text: string): Iterable<string> {
  const component = encodeURIComponent(text);
  yield component;
  yield component.replaceAll(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase());
  yield component.replaceAll('%20', '+');
  yield encodeURI(text);
  // RFC 3986, as jq and curl have it; Python beside it, for paths and for forms.
  const strict = percent(component, /[!'()*]/g);
  yield strict;
  yield strict.replaceAll('%2F', '/');
  yield strict.replaceAll('%20', '+');
  // The forms of browsers.
  yield percent(component, /[!'()~]/g).replaceAll('%20', '+');
}

function percent(text: string, characters: RegExp): string {
  return text.replaceAll(characters, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
}

function* jsonForms(text: string): Iterable<string> {
  const json = JSON.stringify(text).slice(1, -1);
  yield json;
  yield json.replaceAll('/', '\\/');
  // Python writes ASCII; PHP too, and no slash of its own; Go nothing that HTML would read.
  const ascii = unicode(json, /[^ -~]/g);
  yield ascii;
  yield ascii.replaceAll('/', '\\/');
  yield unicode(json, /[<>&\u2028\u2029]/g);
}

function unicode(json: string, units: RegExp): string {
  return json.replaceAll(units, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** With as many bytes before it as do not divide by three: only the digits that no other byte has a part in. */
function* base64Forms(bytes: Buffer): Iterable<string> {
  const whole = bytes.toString('base64');
  yield whole;
  yield urlSafe(whole);
  yield* linesOf(whole, BASE64_LINES);
  for (const before of [0, 1, 2]) {
    const digits = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const inner = digits.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    yield inner;
    yield urlSafe(inner);
  }
}

function* linesOf(digits: string, lengths: readonly number[]): Iterable<string> {
  for (const length of lengths) {
    if (digits.length <= length) continue;
    for (let at = 0; at < digits.length; at += length) {
      const line = digits.slice(at, at + length);
      yield line.length < LAST_LINE_MIN ? `${digits.slice(at - length, at)}\n${line}` : line;
    }
  }
}

function urlSafe(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_');
}

function* piecesOf(form: string): Iterable<string> {
  if (form.length < NEEDLE_BYTES_MIN) return;
  if (form.length <= NEEDLE_BYTES_MAX) return yield form;
  for (let at = 0; at < form.length; at += NEEDLE_BYTES_MAX) {
    const from = Math.min(at, form.length - NEEDLE_BYTES_MAX);
    yield form.slice(from, from + NEEDLE_BYTES_MAX);
  }
}

function binary(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}
