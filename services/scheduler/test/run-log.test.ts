/** What the log is told of runs at its level `debug`, by the request that each came from. */
import { RunLog } from '@penstock/scheduler/testing';
import { describe, expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

function told(): { readonly world: Harness; readonly lines: (readonly [string, Record<string, unknown>])[] } {
  const lines: (readonly [string, Record<string, unknown>])[] = [];
  const log = new RunLog({ debug: (fields, message) => void lines.push([message, fields]) });
  return { world: new Harness({ meter: log }), lines };
}

describe('the log of runs', () => {
  it('follows a run from its acceptance to its end by the id of its request', () => {
    const { world, lines } = told();
    const { id } = world.create(text([stage('a')]), { origin: { kind: 'api', requestId: 'r-1' } });
    world.settle();
    world.session('r1-1', { credits: 1 });
    world.settle();
    world.result(world.job(0));
    world.settle();
    expect(lines.map(([message]) => message)).toEqual([
      'a run is accepted',
      'a stage is granted',
      'a stage has ended',
      'a run has ended',
    ]);
    for (const [message, fields] of lines) expect(fields, message).toMatchObject({ runId: id, requestId: 'r-1' });
    expect(lines[1]?.[1]).toMatchObject({ stage: 'a', attempt: 1, runner: 'r1' });
  });

  it('tells nothing that is not committed, and no id of a run that came from no request', () => {
    const { world, lines } = told();
    const { id } = world.create(text([stage('a')]));
    expect(lines).toEqual([]);
    world.settle();
    world.partition.cancel({ runId: id, tenants: ['ada'] }, () => {});
    world.settle();
    expect(lines.map(([message]) => message)).toEqual(['a run is accepted', 'a run is cancelled']);
    for (const [, fields] of lines) expect(fields).not.toHaveProperty('requestId');
  });
});
