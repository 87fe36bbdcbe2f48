/** docs/events.md says of the public events what their types say: a change of the one without the other fails here. */
import { readFileSync } from 'node:fs';
import { publicEventsOf, type RunEvent } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { eventTables } from './event-tables.ts';

const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const source = read('libs/run/src/public-events.ts');
const page = read('docs/events.md');

describe('docs/events.md', () => {
  it('has a table for every event that clients see, with every field and its meaning', () => {
    const [, tables = ''] = page.split(/<!-- events: .*-->\n/);
    expect(tables.trim()).toBe(eventTables(source));
  });

  it('explains every reason that a stage or a run can have', () => {
    const union = /^export type StageReason =([^;]+);$/m.exec(read('libs/run/src/stage-state.ts'))?.[1] ?? '';
    const reasons = [...union.matchAll(/'(\w+)'/g)].map(([, reason]) => reason);
    const explained = [...page.matchAll(/^\| `(\w+)` \| [A-Z].+\. \|$/gm)].map(([, reason]) => reason);
    expect(reasons.length).toBeGreaterThan(10);
    expect(explained.toSorted()).toEqual(reasons.toSorted());
  });
});

describe('the tables of events', () => {
  const event =
    "/** It is over. */\nexport interface Over {\n  readonly type: 'over';\n  /** Why. */\n  readonly reason?: string | undefined;\n}\n";

  it('have a row for a field that is added to an event', () => {
    const tables = eventTables(`export type PublicEvent = Over;\n\n${event}`);
    expect(tables).toContain('### `over`\n\nIt is over.\n');
    expect(tables).toContain('| `reason` (optional) | string | Why. |');
  });

  it('cannot be made of an event without an interface, nor of a field in an unknown form', () => {
    expect(() => eventTables(`export type PublicEvent = Over | Missing;\n\n${event}`)).toThrow('interface Missing');
    const odd = event.replace('readonly reason?: string | undefined;', 'reason: string;');
    expect(() => eventTables(`export type PublicEvent = Over;\n\n${odd}`)).toThrow('not understood:   reason: string;');
  });

  it('name every field that the mapping of run events gives', () => {
    const given = EVENTS.flatMap((each) => publicEventsOf(each, () => ({ text: 'text', truncated: true })));
    expect(new Set(given.map(({ type }) => type)).size).toBe(7);
    for (const each of given) {
      const [, table = ''] = page.split(`### \`${each.type}\`\n`);
      const [section = ''] = table.split('\n### ');
      for (const field of Object.keys(each)) expect(section).toContain(`| \`${field}\``);
    }
  });
});

const at = Date.UTC(2026, 10, 21);
const EVENTS: readonly RunEvent[] = [
  { type: 'stage_started', at, stage: 't', attempt: 1, runner: 'r', session: 's', credit: 1 },
  { type: 'stage_retrying', at, stage: 't', attempt: 1, reason: 'exit', exitCode: 1, logBytes: 0, dueAt: at + 1 },
  { type: 'stage_completed', at, stage: 't', attempt: 2, status: 'FAILED', reason: 'exit', exitCode: 1, logBytes: 9 },
  { type: 'stage_skipped', at, stage: 'u', reason: 'dependency' },
  { type: 'stages_skipped', at, stages: ['v', 'w'], reason: 'when' },
  { type: 'run_completed', at, status: 'FAILED', outcome: 'interrupted', reason: 'runner_lost' },
  { type: 'run_quarantined', at, cause: 'a fault' },
  { type: 'run_cancelled', at, cancelledStages: 1 },
  { type: 'run_stopped', at, status: 'CANCELLED', cancelledStages: 1 },
  { type: 'run_stopped', at, status: 'FAILED' },
  { type: 'run_admitted', at },
];
