import type { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from 'vitest';
import { RUN_STATUSES } from '@penstock/run';
import { planQuery, type AnySelection } from '../src/query-plan.ts';
import { countersSpec, runsSpec } from '../src/run-documents.ts';
import { openDatabase } from '../src/sqlite/database.ts';
import { Table } from '../src/sqlite/table.ts';
import type { CollectionSpec } from '../src/port.ts';

const anyRef = { ref: { in: ['v1', 'refs/heads/v1', 'refs/tags/v1'] } };
const anyStatus = { status: { in: RUN_STATUSES } };
/** Every choice of filters as the repository asks it. */
const filters: readonly Record<string, unknown>[] = [{}, { pipelineName: 'p' }].flatMap((name) => [
  { ...name, status: 'FAILED' },
  { ...name, repository: 'o/r', ...anyStatus },
  { ...name, repository: 'o/r', status: 'FAILED' },
  { ...name, ...anyRef, ...anyStatus },
  { ...name, ...anyRef, status: 'FAILED' },
  { ...name, repository: 'o/r', ...anyRef, ...anyStatus },
  { ...name, repository: 'o/r', ...anyRef, status: 'FAILED' },
]);

/** What the runs repository asks, as SQLite would go about it. */
const queries: readonly (readonly [title: string, spec: CollectionSpec, selection: AnySelection])[] = [
  [
    'a page of one tenant',
    runsSpec,
    { where: { tenant: { in: ['a'] } }, orderBy: { field: 'id', direction: 'desc' }, limit: 20 },
  ],
  [
    'a later page of two tenants',
    runsSpec,
    {
      where: { tenant: { in: ['a', 'b'] } },
      orderBy: { field: 'id', direction: 'desc' },
      limit: 20,
      after: { id: 'x' },
    },
  ],
  [
    'a run, if it is of these tenants',
    runsSpec,
    { where: { tenant: { in: ['a', 'b'] }, id: { gte: 'x', lte: 'x' } }, limit: 1 },
  ],
  [
    'a page of one pipeline',
    runsSpec,
    {
      where: { tenant: { in: ['a', 'b'] }, pipelineName: 'p' },
      orderBy: { field: 'id', direction: 'desc' },
      limit: 500,
    },
  ],
  ...filters.map((where): readonly [string, CollectionSpec, AnySelection] => [
    `a page of runs by ${Object.keys(where).join(', ')}`,
    runsSpec,
    {
      where: { tenant: { in: ['a', 'b'] }, ...where },
      orderBy: { field: 'id', direction: 'desc' },
      limit: 100,
      after: { id: 'x' },
    },
  ]),
  [
    'a failed run of the same commit and definition',
    runsSpec,
    {
      where: { tenant: 'a', sameAs: 'c/f', status: 'FAILED' },
      orderBy: { field: 'id', direction: 'desc' },
      limit: 1,
      after: { id: 'x' },
    },
  ],
  ['the runs that repeat another', runsSpec, { where: { tenant: 'a', parent: 'x' }, limit: 100 }],
  ['the open runs of a partition', runsSpec, { where: { partition: 0, open: true }, limit: 50, after: { id: 'x' } }],
  [
    'runs later in an incarnation',
    runsSpec,
    {
      where: { partition: 0, incarnation: 1, sequence: { gt: 7 } },
      orderBy: { field: 'sequence', direction: 'asc' },
      limit: 50,
      after: { id: 'x', value: 9 },
    },
  ],
  [
    'runs of later incarnations',
    runsSpec,
    { where: { partition: 0, incarnation: { gt: 1 } }, orderBy: { field: 'incarnation', direction: 'asc' }, limit: 50 },
  ],
  ['counters of a month', countersSpec, { where: { partition: 0, month: '2026-11' }, limit: 50 }],
  [
    'counters of a tenant, newest first',
    countersSpec,
    {
      where: { tenant: 'a' },
      orderBy: { field: 'month', direction: 'desc' },
      limit: 50,
      after: { id: 'x', value: '2026-11' },
    },
  ],
];

describe('query plans', () => {
  it.each(queries)('%s walks an index to its limit: no scan, no sorting of what it has found', (_, spec, selection) => {
    const database = openDatabase({ path: ':memory:', synchronous: 'normal', lockWaitMs: 100 }, [
      runsSpec,
      countersSpec,
    ]);
    const statements: string[] = [];
    const recorder = new Proxy(database, {
      get(target, name) {
        if (name === 'prepare')
          return (sql: string) => {
            statements.push(sql);
            return target.prepare(sql);
          };
        return Reflect.get(target, name, target) as unknown;
      },
    });
    new Table(recorder, spec).list(planQuery('memory', spec, selection), { parts: spec.parts, isLenient: false });
    const steps = explain(database, statements.at(-1) ?? '');
    expect(steps.filter((step) => step.startsWith('SEARCH c_') && / INDEX c_/.test(step)).length).toBeGreaterThan(0);
    expect(steps.filter((step) => step.startsWith('SCAN c_'))).toEqual([]);
    // Several values are merged, and what has been found, at most the limit for each, is put into order.
    const merged = steps.includes('MERGE (UNION ALL)');
    expect(steps.filter((step) => step.includes('TEMP B-TREE') && !merged)).toEqual([]);
    database.close();
  });
});

function explain(database: DatabaseSync, sql: string): string[] {
  return (database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as unknown as unknown[][]).map((row) => String(row[3]));
}
