/** A value that nobody is to see: from standard input, or asked for at a terminal that does not show what is typed. */
import { isUtf8 } from 'node:buffer';
import type { ReadStream } from 'node:tty';
import { FileError, UsageError } from '../process/errors.ts';
import type { Terminal } from '../output/terminal.ts';

/** A server takes 64 KiB; what is more is not read. */
const VALUE_BYTES_MAX = 64 * 1024;
const ENTER = new Set(['\r', '\n', '\u0004']);
const ERASE = new Set(['\u007f', '\b']);
const INTERRUPT = '\u0003';

/** What `echo` and editors put behind a value is no part of it: one line end is cut. */
export async function readSecretValue(
  input: Pick<NodeJS.ReadStream, 'isTTY'> & AsyncIterable<Buffer | string>,
  terminal: Pick<Terminal, 'note'>,
  name: string,
): Promise<string> {
  if (input.isTTY) return await typedValue(input as unknown as ReadStream, terminal, name);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    const read = Buffer.from(chunk);
    bytes += read.length;
    if (bytes > VALUE_BYTES_MAX + 2) throw new FileError(`standard input holds more than ${VALUE_BYTES_MAX} bytes`);
    chunks.push(read);
  }
  const whole = Buffer.concat(chunks);
  if (!isUtf8(whole)) throw new FileError('standard input holds no UTF-8 text: give a secret that is bytes as base64');
  const text = whole.toString('utf8');
  if (text.includes('\0'))
    throw new FileError(
      'standard input holds a NUL, which no variable can hold: give a secret that is bytes as base64',
    );
  const value = text.replace(/\r?\n$/, '');
  if (value === '') throw new FileError('standard input holds no value: it is empty');
  return value;
}

function typedValue(input: ReadStream, { note }: Pick<Terminal, 'note'>, name: string): Promise<string> {
  note(`The value of ${name}, which is not shown (end with Enter):`);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let value = '';
  const take = (typed: string): void => {
    for (const character of typed) {
      if (character === INTERRUPT) return reject(new UsageError('nothing was set', 'secret'));
      if (ENTER.has(character))
        return value === '' ? reject(new UsageError('no value was typed: nothing was set', 'secret')) : resolve(value);
      if (ERASE.has(character)) value = [...value].slice(0, -1).join('');
      else if (Buffer.byteLength(value) < VALUE_BYTES_MAX) value += character;
    }
  };
  input.setEncoding('utf8');
  input.setRawMode(true);
  input.on('data', take);
  return promise.finally(() => {
    input.off('data', take);
    input.setRawMode(false);
    input.pause();
  });
}
