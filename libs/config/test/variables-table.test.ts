import { describe, expect, it } from 'vitest';
import { hasCurrentTable } from '../src/index.ts';
import { renderVariablesTable, TABLE_BEGIN, TABLE_END, withCurrentTable } from '../src/variables-table.ts';
import { variables } from '../src/variables.ts';

describe('the table of variables', () => {
  it('has a row of five cells for every variable, with its default', () => {
    const rows = renderVariablesTable()
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    expect(rows).toHaveLength(Object.keys(variables).length);
    for (const row of rows) expect(row.split('|')).toHaveLength(7);
    expect(rows).toContain(
      '| `SERVICE_RUNNER_LEASE_SECS` | 6 to 600 | `15` | serve, scheduler, runner | A runner that is not heard of for so long has lost its stages. Higher bridges longer outages of the broker, and notices a loss later. |',
    );
    expect(rows.join('\n')).toContain('| `SERVICE_QUEUE_TIMEOUT` | 1s to 365d | `24h` |');
    expect(rows.join('\n')).not.toMatch(/undefined|\[object/);
  });

  it('declares each name once', () => {
    const names = Object.values(variables).map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it('takes the place of an older one in a page', () => {
    const page = `# Operating\n\n${TABLE_BEGIN}\nold\n${TABLE_END}\n\nmore\n`;
    expect(hasCurrentTable(page)).toBe(false);
    const current = withCurrentTable(page);
    expect(hasCurrentTable(current)).toBe(true);
    expect(current).toMatch(/^# Operating\n\n<!-- [\s\S]* -->\n\nmore\n$/);
    expect(withCurrentTable(current)).toBe(current);
    expect(() => withCurrentTable('# Nothing')).toThrow(RangeError);
  });
});
