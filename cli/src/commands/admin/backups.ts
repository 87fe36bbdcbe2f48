/** `penstock admin backup` asks a server for a copy of everything; `penstock admin restore` makes a data folder from it, without a server. */
import { resolve } from 'node:path';
import { pause } from '@penstock/async';
import { printableText } from '../../output/printable-text.ts';
import { ServerRefused } from '../../process/errors.ts';
import { cellOf } from '../../server/answered-cell.ts';
import { fieldAnswered } from '../../server/graphql.ts';
import { fieldOf } from '../../server/json.ts';
import type { NamedAction } from '../../server/named-actions.ts';
import { patient } from '../../server/watch-run.ts';
import type { LocalAction } from './local-action.ts';

const FIELDS = 'folder startedAt finishedAt files bytes notes problem';
const LOOK_MS = 500;

export const backup: NamedAction = async (client, name, args, { terminal, cwd }) => {
  const folder = resolve(cwd, name);
  const begun = await fieldAnswered(
    client,
    `mutation ($folder: String) { adminBackup(folder: $folder) { ${FIELDS} } }`,
    { folder },
    'adminBackup',
  );
  const startedAt = fieldOf(begun, 'startedAt');
  if (!args.flag('json'))
    terminal.note(`penstock: the server copies everything to ${printableText(folder)}; ^C leaves it to that.`);
  const look = patient(
    () => fieldAnswered(client, `query { adminBackupState { ${FIELDS} } }`, {}, 'adminBackupState'),
    terminal,
    new AbortController().signal,
    true,
  );
  let state = begun;
  while (fieldOf(state, 'finishedAt') === null) {
    await pause(LOOK_MS);
    state = await look();
    if (fieldOf(state, 'startedAt') !== startedAt)
      throw new ServerRefused(
        'the server was started anew meanwhile, and the backup was cut off: remove its folder and begin it again',
      );
  }
  if (fieldOf(state, 'problem') !== null) throw new ServerRefused(`there is no backup: ${cellOf(state, 'problem')}`);
  if (args.flag('json')) terminal.print(`${JSON.stringify(state)}\n`);
  else terminal.print(`${wholeLine(state)}\n`);
  for (const line of notesOf(state)) terminal.note(`penstock: ${printableText(line)}`);
};

export const restore: LocalAction = async (name, args, { terminal, env, cwd }) => {
  const { runRestore } = await import('@penstock/standalone');
  const given = args.text('data-dir');
  const folder = resolve(cwd, name);
  if (!args.flag('json')) terminal.note(`penstock: reading ${printableText(folder)}`);
  const dataDir = given === undefined ? undefined : resolve(cwd, given);
  const restored = await runRestore({ folder, dataDir, env }).catch((cause: unknown) => {
    throw new ServerRefused(printableText(cause instanceof Error ? cause.message : String(cause)), { cause });
  });
  const { manifest } = restored;
  if (args.flag('json')) {
    terminal.print(`${JSON.stringify({ dataDir: restored.dataDir, ...manifest })}\n`);
    return;
  }
  terminal.print(
    `Restored into ${printableText(restored.dataDir)}: everything that was accepted before ${printableText(String(manifest.begunAt))} (Penstock ${printableText(String(manifest.version))}).\n`,
  );
  for (const note of manifest.notes) terminal.note(`penstock: ${printableText(note)}`);
  terminal.note(
    `penstock: start it with: penstock serve --data-dir ${printableText(restored.dataDir)} (with the variables that the server had; never beside that server)`,
  );
};

function wholeLine(state: unknown): string {
  const [files, bytes] = [fieldOf(state, 'files'), fieldOf(state, 'bytes')];
  const seconds = (Date.parse(cellOf(state, 'finishedAt')) - Date.parse(cellOf(state, 'startedAt'))) / 1_000;
  const mebibytes = typeof bytes === 'number' ? (bytes / 1024 ** 2).toFixed(1) : '?';
  return `${cellOf(state, 'folder')} is a whole backup: ${typeof files === 'number' ? files : '?'} files, ${mebibytes} MiB, in ${seconds.toFixed(1)} s. It has keys and everything else in it: keep it where nobody else reads it.`;
}

function notesOf(state: unknown): string[] {
  const notes = fieldOf(state, 'notes');
  return Array.isArray(notes) ? notes.map(String) : [];
}
