/** A log line for a person: `13:40:01.123 WARN  scheduler  the message  partition=0`, errors on lines of their own. */
import type { LoggedError } from '@penstock/errors';

const LEVELS: Readonly<Record<number, readonly [name: string, colour: string]>> = {
  10: ['TRACE', '90'],
  20: ['DEBUG', '90'],
  30: ['INFO ', '36'],
  40: ['WARN ', '33'],
  50: ['ERROR', '31'],
  60: ['FATAL', '31;1'],
};

/** `json` is a line that the logger made; what is not JSON is given back as it is. */
export function readableLine(json: string, options: { readonly colour: boolean }): string {
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(json) as Record<string, unknown>;
  } catch {
    return json;
  }
  const { level, time, service, msg, err, ...rest } = fields;
  const paint = (colour: string, text: string) => (options.colour ? `\u001b[${colour}m${text}\u001b[0m` : text);
  const [name, colour] = LEVELS[Number(level)] ?? ['?    ', '0'];
  const clock = String(time).slice(11, 23);
  const extra = Object.entries(rest).map(
    ([key, value]) =>
      `${key}=${visible(typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value))}`,
  );
  const head = [
    paint('90', clock),
    paint(colour, name),
    visible(String(service)),
    visible(String(msg ?? '')),
    ...(extra.length > 0 ? [paint('90', extra.join(' '))] : []),
  ].join('  ');
  return `${head}\n${isLoggedError(err) ? errorLines(err, '  ') : ''}`;
}

function errorLines(error: LoggedError, indent: string): string {
  const lines = [`${indent}${visible(`${error.type}: ${error.message}`)}\n`];
  const frames = (error.stack ?? '').split('\n').filter((line) => line.startsWith('    at '));
  for (const frame of frames) lines.push(`${indent}  ${visible(frame.trim())}\n`);
  for (const inner of error.errors ?? []) lines.push(errorLines(inner, `${indent}  `));
  if (error.cause !== undefined) lines.push(`${indent}because of\n${errorLines(error.cause, `${indent}  `)}`);
  return lines.join('');
}

function isLoggedError(value: unknown): value is LoggedError {
  return typeof value === 'object' && value !== null && 'message' in value;
}

/** Control characters would let whoever named a branch write on the operator's terminal. */
function visible(text: string): string {
  return text.replace(
    // oxlint-disable-next-line no-control-regex -- finding them is the purpose
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
