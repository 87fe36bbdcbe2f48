/** Rows of cells under a head, each column as wide as its widest cell; a column of numbers stands at its right edge. */
import { cellsOf, fitText } from './printable-text.ts';

export interface Column {
  readonly title: string;
  readonly isRight?: boolean;
}

/** The last column is not filled up, so that no line ends in spaces. `paintCell` may colour what is filled already. */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  paintCell: (cell: string, column: number, row: number | undefined) => string = (cell) => cell,
): string[] {
  const widths = columns.map(({ title }, column) =>
    Math.max(cellsOf(title), ...rows.map((row) => cellsOf(row[column] ?? ''))),
  );
  const line = (cells: readonly string[], row: number | undefined): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        const filled =
          columns[column]?.isRight === true ? ' '.repeat(width - cellsOf(cell)) + cell : fitText(cell, width);
        return paintCell(column === columns.length - 1 ? filled.trimEnd() : filled, column, row);
      })
      .join('  ')
      .trimEnd();
  return [
    line(
      columns.map(({ title }) => title),
      undefined,
    ),
    ...rows.map((row, index) => line(row, index)),
  ];
}
