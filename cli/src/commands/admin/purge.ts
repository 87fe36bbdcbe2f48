/** `penstock admin purge`: everything of a tenant is deleted, in as many requests as it takes, and counted. */
import { setTimeout as pause } from 'node:timers/promises';
import { printableText } from '../../output/printable-text.ts';
import { ServerRefused, UsageError } from '../../process/errors.ts';
import { cellOf } from '../../server/answered-cell.ts';
import { fieldAnswered } from '../../server/graphql.ts';
import { fieldOf } from '../../server/json.ts';
import type { NamedAction } from '../../server/named-actions.ts';
import { isFull, patient } from '../../server/watch-run.ts';

/** Each as it is answered, and as it is told. */
const COUNTED = [
  ['runs', 'runs, with logs and kept files'],
  ['cancelledRuns', 'of them cancelled for it'],
  ['deliveries', 'webhook deliveries'],
  ['repositories', 'connected repositories'],
  ['grantsGiven', 'times that others were let in'],
  ['schedules', 'lines of schedules'],
  ['hooks', 'outgoing webhooks'],
  ['secrets', 'secrets'],
  ['tokens', 'personal tokens'],
  ['caches', 'caches'],
  ['extensions', 'private extensions'],
  ['extensionKeys', 'keys for extensions'],
] as const;

const QUERY = `mutation ($tenant: String, $cancel: Boolean) { adminPurge(tenant: $tenant, cancel: $cancel) {
  isDone waitsFor ${COUNTED.map(([field]) => field).join(' ')} } }`;
/** Requests after which nothing more was deleted: a cancelled run's stages have their time to end. */
const FRUITLESS_MAX = 60;
const AGAIN_MS = 1_000;

type Counts = Record<(typeof COUNTED)[number][0], number>;

export const purge: NamedAction = async (client, _name, args, { terminal }) => {
  const tenant = args.text('tenant');
  if (tenant === undefined || tenant === '') throw new UsageError("'admin purge' needs --tenant", 'admin');
  if (!args.flag('yes'))
    throw new UsageError(
      `'admin purge' deletes everything of ${printableText(tenant)} for good: say --yes where that is meant`,
      'admin',
    );
  const counts = Object.fromEntries(COUNTED.map(([field]) => [field, 0])) as Counts;
  let [isDone, waitsFor, fruitless]: [boolean, unknown, number] = [false, null, 0];
  const show = (): void => {
    if (args.flag('json')) terminal.print(`${JSON.stringify({ tenant, isDone, waitsFor, ...counts })}\n`);
    else terminal.print(COUNTED.map(([field, what]) => `${String(counts[field]).padStart(6)}  ${what}\n`).join(''));
  };
  const variables = { tenant, cancel: args.flag('cancel') };
  // Nothing else is repeated by itself: what a server has deleted whose answer is lost is in no count.
  const next = patient(
    () => fieldAnswered(client, QUERY, variables, 'adminPurge'),
    terminal,
    new AbortController().signal,
    true,
    isFull,
  );
  try {
    while (!isDone && fruitless < FRUITLESS_MAX) {
      const receipt = await next();
      const added = add(counts, receipt);
      isDone = fieldOf(receipt, 'isDone') === true;
      waitsFor = isDone ? null : cellOf(receipt, 'waitsFor');
      fruitless = added > 0 ? 0 : fruitless + 1;
      if (!isDone && added === 0) await pause(AGAIN_MS);
    }
  } catch (error) {
    // What was deleted before is gone all the same.
    if (COUNTED.some(([field]) => counts[field] > 0)) show();
    throw error;
  }
  show();
  if (!isDone)
    throw new ServerRefused(
      `not all of ${printableText(tenant)} is deleted; it waits for ${printableText(String(waitsFor))}: say the same again`,
    );
  if (!args.flag('json'))
    terminal.note(
      `Nothing of ${printableText(tenant)} is left but what the audit log says, and what its months have counted.`,
    );
};

/** How much there was. */
function add(counts: Counts, receipt: unknown): number {
  let added = 0;
  for (const [field] of COUNTED) {
    const count = fieldOf(receipt, field);
    if (typeof count !== 'number') continue;
    counts[field] += count;
    added += count;
  }
  return added;
}
