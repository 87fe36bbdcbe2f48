/** docs/command.md says what `penstock help` says. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { helpOf } from '../src/command-line/help-text.ts';
import { COMMANDS } from '../src/commands.ts';
import { EXIT } from '../src/process/errors.ts';

const page = readFileSync(new URL('../../docs/command.md', import.meta.url), 'utf8');

it.each(COMMANDS)('docs/command.md has what `penstock help $name` prints', async ({ name, load }) => {
  const [, shown] = page.split(`## penstock ${name}\n\n\`\`\`text\n`);
  expect(shown?.split('```')[0]).toBe(helpOf((await load()).spec));
});

it('docs/command.md has no command that there is not', () => {
  const names = [...page.matchAll(/^## penstock (.+)$/gm)].map(([, name]) => name);
  expect(names).toEqual(COMMANDS.map(({ name }) => name));
});

it('docs/command.md has every exit code, and no other', () => {
  const codes = [...page.matchAll(/^\| ([\d, ]+) \|/gm)].flatMap(([, numbers = '']) => numbers.split(', ').map(Number));
  expect(codes).toEqual(Object.values(EXIT).toSorted((a, b) => a - b));
});

it('docs/operating.md tells operators to type commands that there are', () => {
  const operating = readFileSync(new URL('../../docs/operating.md', import.meta.url), 'utf8');
  const names = new Set(COMMANDS.map(({ name }) => name.split(' ')[0]));
  const typed = [...operating.matchAll(/(?:`|^|-- )penstock ([a-z-]+)/gm)].map(([, name = '']) => name);
  expect(typed.length).toBeGreaterThan(40);
  expect(typed.filter((name) => !names.has(name))).toEqual([]);
});
