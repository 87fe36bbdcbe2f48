/** The table of docs/operating.md, made from the declarations, so that the two cannot differ. */
import { durationText } from './kinds.ts';
import { variables } from './variables.ts';
import type { Variable } from './variables/declared.ts';

/** The table stands between these two lines, which are comments to a reader of Markdown. */
export const TABLE_BEGIN = '<!-- variables: made by renderVariablesTable() of @penstock/config -->';
export const TABLE_END = '<!-- /variables -->';

export function renderVariablesTable(): string {
  const rows = Object.values(variables).map((declared: Variable<unknown, unknown>) => {
    const required = declared.requiredInProduction === undefined ? '' : '; required in production mode';
    return `| \`${declared.name}\` | ${declared.kind.form} | ${defaultText(declared)}${required} | ${declared.services.join(', ')} | ${declared.meaning} |`;
  });
  return [
    TABLE_BEGIN,
    '',
    '| variable | form | default | read by | meaning |',
    '|---|---|---|---|---|',
    ...rows,
    '',
    TABLE_END,
  ].join('\n');
}

/** Whether the page carries the table as it would be made now. */
export function hasCurrentTable(page: string): boolean {
  return page.replaceAll('\r\n', '\n').includes(renderVariablesTable());
}

/** The page with the table made anew. Throws a RangeError where it has no place for it. */
export function withCurrentTable(page: string): string {
  const begin = page.indexOf(TABLE_BEGIN);
  const end = page.indexOf(TABLE_END, begin);
  if (begin < 0 || end < 0) throw new RangeError(`the page needs the lines '${TABLE_BEGIN}' and '${TABLE_END}'`);
  return page.slice(0, begin) + renderVariablesTable() + page.slice(end + TABLE_END.length);
}

function defaultText(declared: Variable<unknown, unknown>): string {
  if (declared.defaultText !== undefined) return declared.defaultText;
  const value = declared.default;
  return `\`${typeof value === 'number' && declared.name.endsWith('_TIMEOUT') ? durationText(value) : String(value)}\``;
}
