/** How the tests of a run's stages went: a line for each stage that has told of some, and their sum. */
import type { Painter } from './painter.ts';
import { fitText } from './printable-text.ts';
import { StageLabels } from './stage-labels.ts';
import type { StageRow } from './stage-tally.ts';

/** Beyond so many stages those without failures are only summed up. */
const FULL_ROWS_MAX = 60;
const NAME_CELLS_MAX = 60;
const NAME_CELLS_MIN = 8;
const COUNTS = ['passed', 'failed', 'skipped'] as const;

type Counts = Readonly<Record<(typeof COUNTS)[number], number>>;

/** No lines where no stage has told of tests. */
export function testsTable(stages: readonly StageRow[], paint: Painter, columns: number): string[] {
  const all = stages.flatMap(({ name, tests }) => (tests === undefined ? [] : [{ name, tests }]));
  if (all.length === 0) return [];
  const shown = all.length <= FULL_ROWS_MAX ? all : all.filter(({ tests }) => tests.failed > 0).slice(0, FULL_ROWS_MAX);
  const sum: Counts = {
    passed: all.reduce((count, { tests }) => count + tests.passed, 0),
    failed: all.reduce((count, { tests }) => count + tests.failed, 0),
    skipped: all.reduce((count, { tests }) => count + tests.skipped, 0),
  };
  const cells = Object.fromEntries(
    COUNTS.map((count) => [count, Math.max(count.length, String(sum[count]).length)]),
  ) as Counts;
  const countCells = COUNTS.reduce((width, count) => width + cells[count] + 2, 0);
  const labels = new StageLabels(
    shown.map(({ name }) => name),
    Math.min(NAME_CELLS_MAX, Math.max(NAME_CELLS_MIN, columns - countCells)),
  );
  const nameCells = Math.max('in all'.length, labels.cells);
  const line = (name: string, counts: Counts): string => {
    const texts = COUNTS.map((count) => {
      const text = String(counts[count]).padStart(cells[count]);
      return count === 'failed' && counts.failed > 0 ? paint('red', text) : text;
    });
    return `${fitText(name, nameCells)}  ${texts.join('  ')}`;
  };
  const head = COUNTS.map((count) => count.toUpperCase().padStart(cells[count])).join('  ');
  return [
    paint('bold', `${fitText('TESTS', nameCells)}  ${head}`),
    ...shown.map(({ name, tests }) => line(labels.labelOf(name), tests)),
    ...(all.length > 1 ? [line('in all', sum)] : []),
    '',
  ];
}
