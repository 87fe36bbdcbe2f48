/** `penstock admin pause`, `resume` and `drain`: each answers with all that is held up now. */
import { tableLines, type Column } from '../../output/table.ts';
import { printableText } from '../../output/printable-text.ts';
import { UsageError } from '../../process/errors.ts';
import { cellOf } from '../../server/answered-cell.ts';
import { fieldAnswered } from '../../server/graphql.ts';
import type { ServerClient } from '../../server/http-client.ts';
import { fieldOf } from '../../server/json.ts';
import type { CommandContext, ParsedArguments } from '../../command-line/command.ts';
import type { NamedAction } from '../../server/named-actions.ts';
import { sinceOf } from './times.ts';

const FIELDS = 'kind name since by reason';

export const PAUSE_COLUMNS: readonly Column[] = [
  { title: 'HELD UP' },
  { title: 'FOR', isRight: true },
  { title: 'BY' },
  { title: 'REASON' },
];

export const pause: NamedAction = async (client, _name, args, context) => {
  const variables = { key: args.text('key'), label: args.text('label'), reason: args.text('reason') };
  const what = whatOf(variables);
  const query = `mutation ($key: String, $label: String, $reason: String) { adminPause(key: $key, label: $label, reason: $reason) { ${FIELDS} } }`;
  await change(client, { query, variables, field: 'adminPause' }, args, context);
  if (args.flag('json')) return;
  const waiting = await stagesHeldUp(client, variables);
  context.terminal.note(
    `Of ${what} nothing begins any more; what runs goes on (${waiting}). It ends with: penstock admin resume`,
  );
};

export const resume: NamedAction = async (client, _name, args, context) => {
  const variables = { key: args.text('key'), label: args.text('label') };
  const what = whatOf(variables);
  const query = `mutation ($key: String, $label: String) { adminResume(key: $key, label: $label) { ${FIELDS} } }`;
  await change(client, { query, variables, field: 'adminResume' }, args, context);
  if (!args.flag('json')) context.terminal.note(`The pause of ${what} is over.`);
};

export const drain: NamedAction = async (client, runner, args, context) => {
  const undo = args.flag('undo');
  if (undo && args.text('reason') !== undefined) throw new UsageError('--undo takes no --reason', 'admin');
  const query = `mutation ($runner: String, $reason: String, $undo: Boolean) { adminDrain(runner: $runner, reason: $reason, undo: $undo) { ${FIELDS} } }`;
  const variables = { runner, reason: args.text('reason'), undo };
  await change(client, { query, variables, field: 'adminDrain' }, args, context);
  if (args.flag('json')) return;
  const name = printableText(runner);
  context.terminal.note(
    undo
      ? `${name} is given stages again.`
      : `${name} gets nothing but stages of runs that it has begun; it is empty when 'penstock admin runners' says drained.`,
  );
};

export function pauseRow(entry: unknown, now: number): string[] {
  const kind = cellOf(entry, 'kind');
  const what = kind === 'all' ? 'everything' : `${kind} ${cellOf(entry, 'name')}`;
  return [what, sinceOf(cellOf(entry, 'since'), now), cellOf(entry, 'by'), cellOf(entry, 'reason')];
}

interface Change {
  readonly query: string;
  readonly variables: Record<string, unknown>;
  readonly field: string;
}

async function change(
  client: ServerClient,
  { query, variables, field }: Change,
  args: ParsedArguments,
  { terminal }: CommandContext,
): Promise<void> {
  const answer = await fieldAnswered(client, query, variables, field);
  const standing: unknown[] = Array.isArray(answer) ? answer : [];
  if (args.flag('json')) terminal.print(`${JSON.stringify(standing)}\n`);
  else if (standing.length === 0) terminal.print('Nothing is held up.\n');
  else
    terminal.print(
      `${tableLines(
        PAUSE_COLUMNS,
        standing.map((entry) => pauseRow(entry, Date.now())),
      ).join('\n')}\n`,
    );
}

interface Named {
  readonly key?: string | undefined;
  readonly label?: string | undefined;
}

function whatOf({ key, label }: Named): string {
  if (key !== undefined && label !== undefined)
    throw new UsageError('give --key or --label, not both: pause twice for both', 'admin');
  if (key !== undefined) return `the key ${printableText(key)}`;
  return label === undefined ? 'everything' : `the label ${printableText(label)}`;
}

/** A name that was misspelt shows here: nothing waits under it. */
async function stagesHeldUp(client: ServerClient, { key, label }: Named): Promise<string> {
  const query = 'query { adminStatus { queues { key labels stages } } }';
  const answer = await fieldAnswered(client, query, {}, 'adminStatus');
  const queues = fieldOf(answer, 'queues');
  let count = 0;
  for (const queue of Array.isArray(queues) ? queues : []) {
    const labels = fieldOf(queue, 'labels');
    const isIt =
      (key === undefined || fieldOf(queue, 'key') === key) &&
      (label === undefined || (Array.isArray(labels) && labels.includes(label)));
    const stages = fieldOf(queue, 'stages');
    if (isIt && typeof stages === 'number') count += stages;
  }
  return count === 0 ? 'none of its stages waits for a runner now' : `of its stages ${count} wait now`;
}
