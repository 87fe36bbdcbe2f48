/** The closing table: stage, status, time, reason, and a line that counts them. */
import type { Painter } from './painter.ts';
import { cellsOf, fitText, printableText, wrapped } from './printable-text.ts';
import { statusColor } from './status-colors.ts';
import { StageLabels } from './stage-labels.ts';
import { durationText, type StageRow, type StageTally } from './stage-tally.ts';
import { testsTable } from './tests-table.ts';

/** Beyond so many stages those that succeeded are only counted: the table is read for the others. */
const FULL_ROWS_MAX = 60;
const NAME_CELLS_MAX = 60;
/** However narrow the terminal is, so much of a name is needed to know the stage. */
const NAME_CELLS_MIN = 8;
const STATUS_CELLS = 'CANCELLED'.length;

/** `columns`: the width that the table has to keep to; what does not fit beside a stage stands below it. */
export function summaryTable(tally: StageTally, paint: Painter, columns = Infinity): string {
  const all = tally.rows;
  const shown =
    all.length <= FULL_ROWS_MAX
      ? all
      : all.filter((row) => row.status !== 'SUCCESS' || row.attempts > 1).slice(0, FULL_ROWS_MAX);
  const lines: string[] = [];
  if (shown.length > 0) {
    lines.push(...tableOf(shown, paint, columns));
    const hidden = all.length - shown.length;
    if (hidden > 0) lines.push(paint('dim', `and ${hidden} more`));
    lines.push('');
  }
  lines.push(...testsTable(all, paint, columns));
  const status = tally.runStatus ?? 'RUNNING';
  const took =
    tally.startedAtMs === undefined || tally.finishedAtMs === undefined
      ? ''
      : ` in ${durationText(tally.finishedAtMs - tally.startedAtMs)}`;
  lines.push(...wrapped(`${paint(statusColor(status), status)}${took}${countsOf(all)}`, columns));
  return `\n${lines.join('\n')}\n`;
}

function tableOf(shown: readonly StageRow[], paint: Painter, columns: number): string[] {
  const rows = shown.map((row) => ({ ...row, time: timeOf(row), remark: printableText(remarkOf(row)) }));
  const timeCells = Math.max('TIME'.length, ...rows.map((row) => row.time.length));
  const fixedCells = STATUS_CELLS + timeCells + 4;
  const remarkCells = Math.max('REASON'.length, ...rows.map((row) => cellsOf(row.remark))) + 2;
  const labels = new StageLabels(
    rows.map((row) => row.name),
    Math.min(NAME_CELLS_MAX, Math.max(NAME_CELLS_MIN, columns - fixedCells)),
  );
  const nameCells = Math.max('STAGE'.length, labels.cells);
  const isNarrow = nameCells + fixedCells + remarkCells > columns;
  const head = `${fitText('STAGE', nameCells)}  ${'STATUS'.padEnd(STATUS_CELLS)}  ${'TIME'.padStart(timeCells)}`;
  const lines = rows.flatMap((row) => {
    const status = paint(statusColor(row.status), row.status.padEnd(STATUS_CELLS));
    const line = `${fitText(labels.labelOf(row.name), nameCells)}  ${status}  ${row.time.padStart(timeCells)}`;
    if (!isNarrow) return [`${line}  ${row.remark}`.trimEnd()];
    return row.remark === '' ? [line] : [line, ...wrapped(row.remark, columns - 2).map((part) => `  ${part}`)];
  });
  return [paint('bold', isNarrow ? head : `${head}  REASON`), ...lines];
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
