/** The closing table: stage, status, time, reason, and a line that counts them. */
import type { Painter } from './painter.ts';
import { cellsOf, fitText, printableText } from './printable-text.ts';
import { durationText, type StageRow, type StageTally } from './stage-tally.ts';

/** Beyond so many stages those that succeeded are only counted: the table is read for the others. */
const FULL_ROWS_MAX = 60;
const NAME_CELLS_MAX = 60;

const STATUS_COLORS = {
  SUCCESS: 'green',
  FAILED: 'red',
  CANCELLED: 'yellow',
  SKIPPED: 'dim',
  PENDING: 'dim',
  RUNNING: 'cyan',
} as const;

export function summaryTable(tally: StageTally, paint: Painter): string {
  const all = tally.rows;
  const shown =
    all.length <= FULL_ROWS_MAX
      ? all
      : all.filter((row) => row.status !== 'SUCCESS' || row.attempts > 1).slice(0, FULL_ROWS_MAX);
  const lines: string[] = [];
  if (shown.length > 0) {
    const rows = shown.map((row) => ({
      name: printableText(row.name),
      status: row.status,
      time: timeOf(row),
      reason: remarkOf(row),
    }));
    const nameCells = Math.min(NAME_CELLS_MAX, Math.max('STAGE'.length, ...rows.map((row) => cellsOf(row.name))));
    const timeCells = Math.max('TIME'.length, ...rows.map((row) => row.time.length));
    lines.push(paint('bold', `${fitText('STAGE', nameCells)}  STATUS     ${'TIME'.padStart(timeCells)}  REASON`));
    for (const row of rows) {
      const status = paint(STATUS_COLORS[row.status], row.status.padEnd(9));
      lines.push(
        `${fitText(row.name, nameCells)}  ${status}  ${row.time.padStart(timeCells)}  ${printableText(row.reason)}`.trimEnd(),
      );
    }
    const hidden = all.length - shown.length;
    if (hidden > 0) lines.push(paint('dim', `and ${hidden} more`));
    lines.push('');
  }
  const status = tally.runStatus ?? 'RUNNING';
  const took =
    tally.startedAtMs === undefined || tally.finishedAtMs === undefined
      ? ''
      : ` in ${durationText(tally.finishedAtMs - tally.startedAtMs)}`;
  const color = status === 'SUCCESS' ? 'green' : status === 'FAILED' ? 'red' : 'yellow';
  lines.push(`${paint(color, status)}${took}${countsOf(all)}`);
  return `\n${lines.join('\n')}\n`;
}

function timeOf(row: StageRow): string {
  return row.startedAtMs === undefined || row.finishedAtMs === undefined
    ? '-'
    : durationText(row.finishedAtMs - row.startedAtMs);
}

function remarkOf(row: StageRow): string {
  const attempts = row.attempts > 1 ? `${row.attempts} attempts` : '';
  return [row.reason ?? '', attempts].filter((part) => part !== '').join(', ');
}

function countsOf(rows: readonly StageRow[]): string {
  const words = [
    ['SUCCESS', 'passed'],
    ['FAILED', 'failed'],
    ['SKIPPED', 'skipped'],
    ['CANCELLED', 'cancelled'],
  ] as const;
  const counts = words.flatMap(([status, word]) => {
    const count = rows.filter((row) => row.status === status).length;
    return count === 0 ? [] : [`${count} ${word}`];
  });
  return counts.length === 0 ? '' : `: ${counts.join(', ')}`;
}
