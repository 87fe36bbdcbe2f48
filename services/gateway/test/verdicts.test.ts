import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunEvent } from '@penstock/run';
import { graphql, happened, makeWorld, runIdFor, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const YAML = 'pipeline: {name: demo}\nstages:\n  build: {run: make}\n';
const passes = [
  happened.queued('build'),
  happened.started('build'),
  happened.completed('build', 5),
  happened.runCompleted('SUCCESS'),
];
const fails = (reason: 'exit' | 'image'): RunEvent[] => [
  happened.queued('build'),
  happened.started('build'),
  happened.completed('build', 5, { status: 'FAILED', reason, ...(reason === 'exit' ? { exitCode: 2 } : {}) }),
  happened.runCompleted('FAILED'),
];
const RUN = 'query ($id: String) { run(id: $id) { verdict verdictEvidence } }';

async function ended(events: readonly RunEvent[], commit?: string, yaml = YAML): Promise<string> {
  const id = runIdFor();
  world.owner.adopt(id, yaml, 'service', commit === undefined ? { kind: 'api' } : { kind: 'webhook', commit });
  world.owner.commit(id, events);
  await world.owner.project(id);
  return id;
}

describe('the verdict of a run', () => {
  it('is null while it runs, and then says whose doing its end was', async () => {
    const app = await world.gateway();
    const live = runIdFor();
    world.owner.adopt(live, YAML);
    const of = async (id: string) => (await graphql(app, RUN, { variables: { id } })).data?.['run'];
    expect(await of(live)).toEqual({ verdict: null, verdictEvidence: [] });
    expect(await of(await ended(passes))).toEqual({ verdict: 'passed', verdictEvidence: [] });
    expect(await of(await ended(fails('exit')))).toEqual({
      verdict: 'failed',
      verdictEvidence: ["'build' failed (exit code 2)"],
    });
    expect(await of(await ended(fails('image')))).toMatchObject({ verdict: 'infrastructure' });
  });

  it('a run that passed after another of its commit and definition had failed is flaky; the one that failed stays failed', async () => {
    const app = await world.gateway();
    const verdict = async (id: string) =>
      (await graphql(app, RUN, { variables: { id } })).data?.['run'] as { verdict: string; verdictEvidence: string[] };
    const failed = await ended(fails('exit'), 'c1');
    const [again, otherCommit, otherFile] = [
      await ended(passes, 'c1'),
      await ended(passes, 'c2'),
      await ended(passes, 'c1', `${YAML}# another file\n`),
    ];
    expect(await verdict(again)).toEqual({
      verdict: 'flaky',
      verdictEvidence: [`the run ${failed} of the same commit and definition failed before it`],
    });
    expect((await verdict(failed)).verdict).toBe('failed');
    expect((await verdict(otherCommit)).verdict).toBe('passed');
    expect((await verdict(otherFile)).verdict).toBe('passed');
  });

  it('is told in lists too, whether their stages are asked for or not', async () => {
    const app = await world.gateway();
    await ended(fails('exit'));
    for (const stages of ['', 'stages { name }']) {
      const { data, errors } = await graphql(app, `{ runs(limit: 1) { verdict verdictEvidence ${stages} } }`);
      expect(errors).toEqual([]);
      expect(data?.['runs']).toMatchObject([{ verdict: 'failed', verdictEvidence: ["'build' failed (exit code 2)"] }]);
    }
  });
});
