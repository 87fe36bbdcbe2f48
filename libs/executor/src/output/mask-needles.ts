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
    yield hex;
    yield hex.toUpperCase();
  }
}

function* escapedForms(text: string): Iterable<string> {
  const url = encodeURIComponent(text.toWellFormed());
  yield url;
  yield url.replaceAll(/%[0-9A-F]{2}/g, (byte) => byte.toLowerCase());
  // As forms have it, and with the characters that some leave alone and others do not.
  yield url.replaceAll('%20', '+');
  yield url.replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  const json = JSON.stringify(text).slice(1, -1);
  yield json;
  yield json.replaceAll('/', '\\/');
  yield json.replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** With as many bytes before it as do not divide by three: only the digits that no other byte has a part in. */
function* base64Forms(bytes: Buffer): Iterable<string> {
  const whole = bytes.toString('base64');
  yield whole;
  yield urlSafe(whole);
  for (const length of BASE64_LINES)
    if (whole.length > length) for (let at = 0; at < whole.length; at += length) yield whole.slice(at, at + length);
  for (const before of [0, 1, 2]) {
    const digits = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const inner = digits.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    yield inner;
    yield urlSafe(inner);
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
