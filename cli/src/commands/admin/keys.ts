/** `penstock admin rotate-key`: has secrets sealed anew under the first master key, waits for it, and says which of the others may go. */
import { pause } from '@penstock/async';
import { tableLines } from '../../output/table.ts';
import { ServerUnreached } from '../../process/errors.ts';
import { cellOf } from '../../server/answered-cell.ts';
import { fieldAnswered } from '../../server/graphql.ts';
import { fieldOf } from '../../server/json.ts';
import type { NamedAction } from '../../server/named-actions.ts';
import { patient } from '../../server/watch-run.ts';

const FIELDS = 'processes agree keys { id state sealed usedBy mayGo }';
const LOOK_MS = 500;
/** Where nothing becomes less for so long it is not waited for: a row is damaged, or other processes hold another key for the first. */
const STILL_LOOKS_MAX = 60;
const COLUMNS = [
  { title: 'KEY' },
  { title: 'STATE' },
  { title: 'SEALED', isRight: true },
  { title: 'USED BY', isRight: true },
  { title: 'MAY GO' },
];

export const rotateKey: NamedAction = async (client, _name, args, { terminal }) => {
  let state = await fieldAnswered(client, `mutation { adminRotateKey { ${FIELDS} } }`, {}, 'adminRotateKey');
  const look = patient(
    () => fieldAnswered(client, `query { adminMasterKeys { ${FIELDS} } }`, {}, 'adminMasterKeys'),
    terminal,
    new AbortController().signal,
    true,
  );
  for (let still = 0, left = leftOf(state); left > 0 && still < STILL_LOOKS_MAX;) {
    await pause(LOOK_MS);
    state = await look();
    const now = leftOf(state);
    still = now < left ? 0 : still + 1;
    left = now;
  }
  if (args.flag('json')) {
    terminal.print(`${JSON.stringify(state)}\n`);
    return;
  }
  const keys = keysOf(state);
  const rows = keys.map((key) => [
    cellOf(key, 'id'),
    cellOf(key, 'state'),
    fieldOf(key, 'state') === 'FIRST' ? '-' : String(numberOf(key, 'sealed')),
    String(numberOf(key, 'usedBy')),
    fieldOf(key, 'mayGo') === true ? 'yes' : 'no',
  ]);
  for (const line of tableLines(COLUMNS, rows)) terminal.print(`${line}\n`);
  for (const line of toldOf(state, keys)) terminal.note(`penstock: ${line}`);
};

/** What is to be done, and what is wrong. */
function toldOf(state: unknown, keys: readonly unknown[]): readonly string[] {
  const others = keys.filter((key) => fieldOf(key, 'state') === 'OTHER');
  const missing = keys.filter((key) => fieldOf(key, 'state') === 'MISSING');
  const lost = missing.reduce<number>((sum, key) => sum + numberOf(key, 'sealed'), 0);
  const told: string[] = [];
  if (fieldOf(state, 'agree') !== true)
    told.push(
      `${numberOf(state, 'processes')} processes of auth do not seal under the same key: no key may go before they do (one that was killed counts for two hours).`,
    );
  if (others.some((key) => fieldOf(key, 'mayGo') !== true) && leftOf(state) > 0)
    told.push(`${leftOf(state)} are still kept under another key: call it again later, and look into the log of auth.`);
  if (others.length === 0)
    told.push('there is one key alone: put a new one in front, SERVICE_MASTER_KEY=<new>,<old>, and restart auth.');
  else if (others.every((key) => fieldOf(key, 'mayGo') === true))
    told.push('take the keys that may go off SERVICE_MASTER_KEY; backups of before need them still.');
  if (lost > 0) told.push(`${lost} are kept under keys that nobody has: put those back, or set these secrets anew.`);
  return told;
}

function keysOf(state: unknown): readonly unknown[] {
  const keys = fieldOf(state, 'keys');
  if (!Array.isArray(keys)) throw new ServerUnreached('the server says nothing of its keys: is it a Penstock server?');
  return keys;
}

/** What can be sealed anew, and is not yet. */
function leftOf(state: unknown): number {
  return keysOf(state)
    .filter((key) => fieldOf(key, 'state') === 'OTHER')
    .reduce<number>((sum, key) => sum + numberOf(key, 'sealed'), 0);
}

function numberOf(of: unknown, field: string): number {
  const value = fieldOf(of, field);
  return typeof value === 'number' ? value : 0;
}
