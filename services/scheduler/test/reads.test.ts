/** What a partition answers to `get`: which of its runs, and how many of them at a time. */
import type { GetReply, GetRequest } from '@penstock/bus';
import { refsOf } from '@penstock/run';
import { describe, expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

type Answer = Extract<GetReply, { ok: true }>;

function ask(world: Harness, request: Partial<GetRequest>): Answer {
  const answers: Answer[] = [];
  world.partition.get({ runIds: [], tenants: ['ada'], ...request }, (reply) => {
    if (reply.ok) answers.push(reply);
  });
  const [answer] = answers;
  if (answer === undefined) throw new Error('the partition did not answer');
  return answer;
}

describe('the newest runs of a partition', () => {
  it('are those of the filter and before the cursor', () => {
    const world = new Harness();
    const origin = { kind: 'webhook', repository: 'o/r', ref: 'refs/heads/main' } as const;
    const named = (name: string): string => text([stage('a')], { name });
    const first = world.create(named('build'), { origin }).id;
    const second = world.create(named('deploy'), { origin }).id;
    const third = world.create(named('build')).id;
    world.settle();
    world.partition.cancel({ runId: second, tenants: ['ada'] }, () => {});
    world.settle();
    const ids = (request: Partial<GetRequest>): string[] =>
      ask(world, { newest: 10, ...request }).runs.map(({ id }) => id);
    expect(ids({})).toEqual([third, second, first]);
    expect(ids({ before: third })).toEqual([second, first]);
    expect(ids({ newest: 1, before: third })).toEqual([second]);
    expect(ids({ filter: { pipelineName: 'build' } })).toEqual([third, first]);
    expect(ids({ filter: { status: 'CANCELLED' } })).toEqual([second]);
    expect(ids({ filter: { repository: 'o/r', refs: refsOf('main') } })).toEqual([second, first]);
    expect(ids({ filter: { refs: refsOf('other') } })).toEqual([]);
  });

  it('that are too much for one answer are named, and are answered when they are asked for', () => {
    const world = new Harness();
    const wide = text(Array.from({ length: 1_500 }, (_, index) => stage(`s${index}`)));
    const ids = Array.from({ length: 5 }, () => world.create(wide).id).toReversed();
    world.settle();
    const first = ask(world, { newest: 10 });
    expect(first.runs.map(({ id }) => id)).toEqual(ids.slice(0, 2));
    expect(first.rest).toEqual(ids.slice(2));
    const second = ask(world, { runIds: first.rest ?? [] });
    expect(second.runs.map(({ id }) => id)).toEqual(ids.slice(2, 4));
    expect(ask(world, { runIds: second.rest ?? [] })).toMatchObject({ runs: [{ id: ids[4] }] });
    expect(ask(world, { runIds: second.rest ?? [] })).not.toHaveProperty('rest');
  });
});
