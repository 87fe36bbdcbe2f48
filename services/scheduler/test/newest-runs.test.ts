import type { GetReply } from '@penstock/bus';
import { expect, it } from 'vitest';
import { Harness, stage, text } from './support.ts';

it('the newest runs of a tenant are answered in their order, however many there are and in whatever order they came', () => {
  const world = new Harness({ settings: { liveRunsPerKeyMax: 1_000 } });
  world.session('r1-s');
  const ids: string[] = [];
  for (let run = 0; run < 300; run++) {
    const id = world.id({ ageMs: (run * 7_919) % 300 });
    ids.push(id);
    world.create(text([stage('a')]), { id });
  }
  world.settle();
  const newest = ids.toSorted().toReversed();
  const answers: GetReply[] = [];
  world.partition.get({ runIds: [], tenants: ['ada'], newest: 3 }, (reply) => void answers.push(reply));
  world.partition.get(
    { runIds: [], tenants: ['ada'], newest: 2, before: newest[10] },
    (reply) => void answers.push(reply),
  );
  expect(answers.map((answer) => (answer.ok ? answer.runs.map(({ id }) => id) : []))).toEqual([
    newest.slice(0, 3),
    newest.slice(11, 13),
  ]);
});

it('P22: says which commit was the last about a tenant, as soon as it is committed', () => {
  const world = new Harness();
  world.session('r1-s');
  const changed = (tenant: string): number => {
    const answers: GetReply[] = [];
    world.partition.get({ runIds: [], changesOf: [tenant] }, (reply) => void answers.push(reply));
    const [answer] = answers;
    return answer?.ok === true ? (answer.changed ?? Number.NaN) : Number.NaN;
  };
  world.settle();
  const before = changed('ada');
  expect(changed('eve')).toBe(before);
  world.create(text([stage('a')]));
  world.settle();
  expect(changed('ada')).toBeGreaterThan(before);
  expect(changed('eve')).toBe(before);
});
