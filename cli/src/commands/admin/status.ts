/** `penstock admin status` and `penstock admin runners`: how an installation stands, in tables. */
import { tableLines, type Column } from '../../output/table.ts';
import { ServerUnreached } from '../../process/errors.ts';
import { cellOf } from '../../server/answered-cell.ts';
import { fieldAnswered } from '../../server/graphql.ts';
import type { ServerClient } from '../../server/http-client.ts';
import { fieldOf } from '../../server/json.ts';
import type { NamedAction } from '../../server/named-actions.ts';
import { pauseRow, PAUSE_COLUMNS } from './pauses.ts';
import { sinceOf } from './times.ts';

const RUNNER_FIELDS = 'id session labels slots busy isDrained tenant';
const STATUS_QUERY = `query { adminStatus {
  schedulers { id answers trouble journalUsed knowsPauses partitions { number isOpen runs parked lagSecs } }
  runners { ${RUNNER_FIELDS} }
  queues { labels key stages since isPaused }
  pauses { kind name since by reason }
  isCut
} }`;

const RUNNER_COLUMNS: readonly Column[] = [
  { title: 'RUNNER' },
  { title: 'BUSY', isRight: true },
  { title: 'SLOTS', isRight: true },
  { title: 'STATE' },
  { title: 'FOR' },
  { title: 'LABELS' },
];
const SCHEDULER_COLUMNS: readonly Column[] = [
  { title: 'SCHEDULER' },
  { title: 'PARTITIONS' },
  { title: 'RUNS', isRight: true },
  { title: 'PARKED', isRight: true },
  { title: 'LAG', isRight: true },
  { title: 'JOURNAL', isRight: true },
  { title: 'STATE' },
];
const QUEUE_COLUMNS: readonly Column[] = [
  { title: 'STAGES', isRight: true },
  { title: 'OLDEST', isRight: true },
  { title: 'STATE' },
  { title: 'KEY' },
  { title: 'LABELS' },
];
const PARTITIONS_SHOWN_MAX = 8;

export const status: NamedAction = async (client, _name, args, { terminal }) => {
  const answer = await fieldAnswered(client, STATUS_QUERY, {}, 'adminStatus');
  const [schedulers, known, queues, pauses] = ['schedulers', 'runners', 'queues', 'pauses'].map((field) =>
    listOf(client, fieldOf(answer, field)),
  ) as [unknown[], unknown[], unknown[], unknown[]];
  if (args.flag('json')) {
    terminal.print(`${JSON.stringify(answer)}\n`);
    return;
  }
  const now = Date.now();
  const queueRows = queues.map((queue) => [
    String(numberOf(queue, 'stages')),
    sinceOf(cellOf(queue, 'since'), now),
    fieldOf(queue, 'isPaused') === true ? 'paused' : 'waits',
    cellOf(queue, 'key'),
    cellOf(queue, 'labels') || '(any)',
  ]);
  const parts: readonly (readonly string[])[] = [
    pauses.length === 0
      ? []
      : tableLines(
          PAUSE_COLUMNS,
          pauses.map((pause) => pauseRow(pause, now)),
        ),
    tableLines(SCHEDULER_COLUMNS, schedulers.map(schedulerRow)),
    known.length === 0 ? ['No runner is connected.'] : tableLines(RUNNER_COLUMNS, known.map(runnerRow)),
    queues.length === 0 ? ['Nothing waits for a runner.'] : tableLines(QUEUE_COLUMNS, queueRows),
  ];
  terminal.print(
    `${parts
      .filter((lines) => lines.length > 0)
      .map((lines) => lines.join('\n'))
      .join('\n\n')}\n`,
  );
  if (fieldOf(answer, 'isCut') === true)
    terminal.note('penstock: there are more runners or queues than one answer holds; the metrics count all of them.');
};

export const runners: NamedAction = async (client, _name, args, { terminal }) => {
  const answer = await fieldAnswered(client, `query { adminRunners { ${RUNNER_FIELDS} } }`, {}, 'adminRunners');
  const known = listOf(client, answer);
  if (args.flag('json')) terminal.print(`${JSON.stringify(known)}\n`);
  else if (known.length === 0) terminal.note('penstock: no runner is connected.');
  else terminal.print(`${tableLines(RUNNER_COLUMNS, known.map(runnerRow)).join('\n')}\n`);
};

function runnerRow(runner: unknown): string[] {
  const [busy, slots] = [numberOf(runner, 'busy'), numberOf(runner, 'slots')];
  const isDrained = fieldOf(runner, 'isDrained') === true;
  const state = isDrained
    ? busy === 0
      ? 'drained'
      : 'draining'
    : busy === 0
      ? 'idle'
      : busy < slots
        ? 'busy'
        : 'full';
  const whose = typeof fieldOf(runner, 'tenant') === 'string' ? cellOf(runner, 'tenant') : 'all';
  return [cellOf(runner, 'id'), String(busy), String(slots), state, whose, cellOf(runner, 'labels')];
}

function schedulerRow(scheduler: unknown): string[] {
  const id = cellOf(scheduler, 'id');
  if (fieldOf(scheduler, 'answers') !== true) return [id, '-', '-', '-', '-', '-', 'does not answer'];
  const listed = fieldOf(scheduler, 'partitions');
  const partitions: unknown[] = Array.isArray(listed) ? listed : [];
  const sum = (field: string): number => partitions.reduce<number>((all, each) => all + numberOf(each, field), 0);
  const lag = Math.max(0, ...partitions.map((partition) => numberOf(partition, 'lagSecs')));
  const opening = partitions.filter((partition) => fieldOf(partition, 'isOpen') !== true).length;
  const trouble = fieldOf(scheduler, 'trouble');
  const state =
    typeof trouble === 'string'
      ? cellOf(scheduler, 'trouble')
      : fieldOf(scheduler, 'knowsPauses') !== true
        ? 'grants nothing: has not heard what is paused'
        : opening > 0
          ? `takes over ${opening}`
          : 'ok';
  return [
    id,
    numbersShown(partitions.map((partition) => numberOf(partition, 'number'))),
    String(sum('runs')),
    String(sum('parked')),
    `${lag.toFixed(1)}s`,
    `${Math.round(numberOf(scheduler, 'journalUsed') * 100)}%`,
    state,
  ];
}

function numbersShown(numbers: readonly number[]): string {
  if (numbers.length === 0) return '-';
  const shown = numbers.slice(0, PARTITIONS_SHOWN_MAX).join(',');
  return numbers.length > PARTITIONS_SHOWN_MAX ? `${shown},… (${numbers.length})` : shown;
}

function numberOf(entry: unknown, field: string): number {
  const value = fieldOf(entry, field);
  return typeof value === 'number' ? value : 0;
}

function listOf(client: ServerClient, value: unknown): unknown[] {
  if (!Array.isArray(value))
    throw new ServerUnreached(`${client.server.base} does not say how it stands: is it a Penstock server?`);
  return value;
}
