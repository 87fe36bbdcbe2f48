/**
 * A line of a log as it may be shown: colours become names, what would move a cursor, ring or write titles is taken out, and every
 * character that would not be seen, or would turn the reading direction, is made to be seen. Pure.
 */
import { unseenIn } from '../parts/unseen.ts';

export interface Segment {
  readonly text: string;
  /** Names of classes, empty for plain text. */
  readonly classes: string;
  /** `rgb(…)` of what has no name. */
  readonly color?: string | undefined;
  readonly background?: string | undefined;
}

interface Style {
  bold: boolean;
  faint: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
  /** 0 to 15 by number, else `rgb(…)`. */
  foreground: number | string | null;
  background: number | string | null;
}

const PLAIN: Style = {
  bold: false,
  faint: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
  foreground: null,
  background: null,
};

const NAMES = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
/**
 * CSI … final; OSC and its relatives up to BEL or ST; two-character escapes; and what is left of one that a line has cut off. The bounds
 * keep a line of millions of escapes from being looked through again and again.
 */
const ESCAPE =
  // oxlint-disable-next-line no-control-regex
  /\u001b\[([0-9:;<=>?]{0,256})[ -/]{0,8}([@-~])|\u001b[PX\]^_][^\u0007\u001b\u009c]{0,4096}(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]{0,8}[0-~]?/gu;

/** At most `charsMax` of the line's own characters, so that a line of ten megabytes costs no more than a short one. */
export function segmentsOf(line: string, charsMax: number): Segment[] {
  const text = lastOverwrite(line.length > charsMax ? line.slice(0, charsMax) : line);
  const segments: Segment[] = [];
  const style = { ...PLAIN };
  let from = 0;
  const add = (part: string): void => {
    if (part !== '') pushText(segments, part, style);
  };
  for (const match of text.matchAll(ESCAPE)) {
    add(text.slice(from, match.index));
    from = match.index + match[0].length;
    if (match[2] === 'm') apply(style, match[1] ?? '');
  }
  add(text.slice(from));
  return segments;
}

/** The text alone, for searching and copying. */
export function plainText(line: string): string {
  return line.replace(ESCAPE, '');
}

/** What a progress bar leaves on a terminal: the part behind the last return that says something. */
function lastOverwrite(text: string): string {
  if (!text.includes('\r')) return text;
  const parts = text.split('\r');
  return parts.findLast((part) => part !== '') ?? '';
}

function pushText(segments: Segment[], text: string, style: Style): void {
  let from = 0;
  const plain = segmentOf(style);
  for (const each of unseenIn(text)) {
    if (each.from > from) segments.push({ ...plain, text: text.slice(from, each.from) });
    segments.push({ text: each.shown, classes: 'unseen' });
    from = each.to;
  }
  if (from < text.length) segments.push({ ...plain, text: from === 0 ? text : text.slice(from) });
}

function segmentOf(style: Style): Omit<Segment, 'text'> {
  const [foreground, background] = style.inverse
    ? [style.background, style.foreground]
    : [style.foreground, style.background];
  const classes = [
    ...(['bold', 'faint', 'italic', 'underline', 'strike'] as const).filter((name) => style[name]),
    ...(style.inverse ? ['inverse'] : []),
    ...(typeof foreground === 'number' ? [`fg-${colorName(foreground)}`] : []),
    ...(typeof background === 'number' ? [`bg-${colorName(background)}`] : []),
  ];
  return {
    classes: classes.join(' '),
    ...(typeof foreground === 'string' ? { color: foreground } : {}),
    ...(typeof background === 'string' ? { background } : {}),
  };
}

function colorName(number: number): string {
  return `${number > 7 ? 'bright-' : ''}${NAMES[number % 8] ?? 'white'}`;
}

function apply(style: Style, parameters: string): void {
  const codes = parameters.split(/[:;]/u).map((each) => (each === '' ? 0 : Number(each)));
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 38 || code === 48) {
      const [color, used] = extended(codes.slice(at + 1, at + 6));
      if (color !== null) style[code === 38 ? 'foreground' : 'background'] = color;
      at += used;
    } else applyOne(style, code);
  }
}

function applyOne(style: Style, code: number): void {
  if (code === 0) Object.assign(style, PLAIN);
  else if (code === 1) style.bold = true;
  else if (code === 2) style.faint = true;
  else if (code === 3) style.italic = true;
  else if (code === 4 || code === 21) style.underline = true;
  else if (code === 7) style.inverse = true;
  else if (code === 9) style.strike = true;
  else if (code === 22) style.bold = style.faint = false;
  else if (code === 23) style.italic = false;
  else if (code === 24) style.underline = false;
  else if (code === 27) style.inverse = false;
  else if (code === 29) style.strike = false;
  else if (code >= 30 && code <= 37) style.foreground = code - 30;
  else if (code === 39) style.foreground = null;
  else if (code >= 40 && code <= 47) style.background = code - 40;
  else if (code === 49) style.background = null;
  else if (code >= 90 && code <= 97) style.foreground = code - 82;
  else if (code >= 100 && code <= 107) style.background = code - 92;
}

/** `5;n` or `2;r;g;b`: the colour, and how many of the codes it has taken. */
function extended(codes: readonly number[]): [number | string | null, number] {
  if (codes[0] === 5) return [indexed(codes[1] ?? 0), 2];
  if (codes[0] !== 2) return [null, codes.length];
  const [red = 0, green = 0, blue = 0] = codes.slice(1).map((each) => Math.min(255, each));
  return [`rgb(${red}, ${green}, ${blue})`, 4];
}

function indexed(number: number): number | string {
  if (number < 16) return number;
  if (number > 231) {
    const grey = Math.min(255, 8 + (number - 232) * 10);
    return `rgb(${grey}, ${grey}, ${grey})`;
  }
  const level = (step: number): number => (step === 0 ? 0 : 55 + step * 40);
  const cube = number - 16;
  return `rgb(${level(Math.floor(cube / 36))}, ${level(Math.floor(cube / 6) % 6)}, ${level(cube % 6)})`;
}
