/** Commands that documents tell people to type are there, with their options. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { actionsOf } from '../src/command-line/completion.ts';
import { readArguments } from '../src/command-line/arguments.ts';
import { COMMANDS } from '../src/commands.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const DOCUMENTS = ['README.md', ...readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'))].map((name) =>
  name === 'README.md' ? name : join('docs', name),
);

/** Lines of shells, and what stands between back quotes, that begin with the command. */
function typedIn(text: string): string[] {
  const blocks = [...text.matchAll(/^```(?:sh|text)\n(.*?)^```/gms)].flatMap(([, block = '']) =>
    block.replaceAll('\\\n', ' ').split('\n'),
  );
  const spans = [...text.matchAll(/`((?:npm run -s )?penstock [^`\n]+)`/g)].map(([, span = '']) => span);
  return [...blocks, ...spans].flatMap((line) => {
    const [, typed] = /^\s*(?:npm run -s )?penstock (?:-- )?(.*)$/.exec(line) ?? [];
    // Neither what is said of it, nor where it is written to.
    return typed === undefined ? [] : [(typed.split(/ +# | *[|<>;&]+ /)[0] ?? '').trim()];
  });
}

function wordsOf(typed: string): string[] {
  return [...typed.matchAll(/'[^']*'|"[^"]*"|\S+/g)]
    .map(([word]) => word.replaceAll(/^[['"]+|['"\]]+$/g, ''))
    .filter((word) => word !== '');
}

async function complaintOf(typed: string): Promise<string | undefined> {
  const words = wordsOf(typed);
  const of = (count: number): (typeof COMMANDS)[number] | undefined =>
    COMMANDS.find(({ name }) => name === words.slice(0, count).join(' '));
  const entry = of(2) ?? of(1);
  if (entry === undefined) return `no command: ${typed}`;
  const { spec } = await entry.load();
  const rest = words.slice(entry.name.split(' ').length);
  try {
    // A command that is only named, such as `penstock logs`, is not complete.
    readArguments({ ...spec, positionals: { min: 0, max: Number.POSITIVE_INFINITY, missing: '' } }, rest);
  } catch (error) {
    return `${typed}: ${(error as Error).message}`;
  }
  const actions = actionsOf(spec);
  const [action] = rest;
  const isKnown = actions.length === 0 || action === undefined || action.startsWith('<') || actions.includes(action);
  return isKnown ? undefined : `${typed}: no action ${action}`;
}

describe('what is typed', () => {
  const typed = DOCUMENTS.filter((document) => document !== 'docs/command.md').flatMap((document) =>
    typedIn(read(document)).map((line) => `${document}\t${line}`),
  );

  it('is a command with options that there are', async () => {
    expect(typed.length).toBeGreaterThan(150);
    const complaints = await Promise.all(
      // What signatures are made over is a text that begins so, and no command.
      typed
        .filter((line) => !line.includes('extension package sha256:'))
        .map(async (line) => await complaintOf(line.split('\t')[1] ?? '')),
    );
    expect(complaints.filter((complaint) => complaint !== undefined)).toEqual([]);
  });
});
