/** A field of what a server has answered, as a cell of a table: nothing of it does anything to the terminal. */
import { fieldOf } from './json.ts';
import { printableText } from '../output/printable-text.ts';

/** Of a list its entries; `-` where there is no text. */
export function cellOf(entry: unknown, field: string): string {
  const value = fieldOf(entry, field);
  return printableText(Array.isArray(value) ? value.join(',') : typeof value === 'string' ? value : '-');
}
