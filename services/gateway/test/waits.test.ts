/** `waitingOn`: asked of the owner once for all of an operation, and told whatever becomes of the owner. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HOLDER } from './fake-owner.ts';
import { graphql, happened, makeWorld, runIdFor, YAML, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.reset());
afterAll(() => world.close());

const FIELDS = 'waitingOn { kind holder position since etaSecs message }';
const QUERY = `query ($id: String) { run(id: $id) { ${FIELDS} stages { name ${FIELDS} } } }`;

function makeRun(events: Parameters<World['owner']['commit']>[1]): string {
  const id = runIdFor();
  world.owner.adopt(id, YAML);
  world.owner.commit(id, events);
  return id;
}

describe('waitingOn', () => {
  it('tells of a run and of each stage what it waits for, with one request to the owner', async () => {
    const app = await world.gateway();
    const id = makeRun([happened.queued('build')]);
    const { data, errors } = await graphql(app, QUERY, { variables: { id } });
    expect(errors).toEqual([]);
    const noRunner = {
      kind: 'no_runner',
      holder: null,
      position: null,
      etaSecs: null,
      message: 'No runner is connected.',
    };
    expect(data?.['run']).toMatchObject({
      waitingOn: [noRunner],
      stages: [
        { name: 'build', waitingOn: [noRunner] },
        { name: 'test', waitingOn: [{ kind: 'dependency', holder: 'build', message: "It comes after 'build'." }] },
      ],
    });
    expect(world.owner.asked.filter((verb) => verb === 'waits')).toHaveLength(1);
  });

  it('of a held run is repeated by its stages', async () => {
    const app = await world.gateway();
    const id = makeRun([{ type: 'run_held', at: Date.now(), reason: 'quota' }]);
    const { data } = await graphql(app, QUERY, { variables: { id } });
    const turn = {
      kind: 'quota',
      holder: HOLDER,
      position: 1,
      since: null,
      etaSecs: 2,
      message: 'It waits for its turn.',
    };
    expect(data?.['run']).toEqual({
      waitingOn: [turn],
      stages: [
        { name: 'build', waitingOn: [turn] },
        { name: 'test', waitingOn: [turn] },
      ],
    });
  });

  it('of a list of runs is one request for each partition, with the tenants of whoever asks', async () => {
    const app = await world.gateway();
    for (let count = 0; count < 5; count++) makeRun([happened.queued('build')]);
    const { data } = await graphql(app, `{ runs { ${FIELDS} } }`);
    const runs = data?.['runs'] as { waitingOn: unknown[] }[];
    expect(runs.filter(({ waitingOn }) => waitingOn.length === 1)).toHaveLength(5);
    expect(world.owner.waitsAskedBy).toEqual([['service']]);
  });

  it('is empty once the run has ended, for an earlier version, and for what is executed; nobody is asked', async () => {
    const app = await world.gateway();
    const id = makeRun([
      happened.queued('build'),
      happened.started('build'),
      happened.completed('build', 0, { status: 'FAILED', reason: 'exit' }),
      happened.skipped('test'),
      happened.runCompleted('FAILED'),
    ]);
    const empty = {
      waitingOn: [],
      stages: [
        { name: 'build', waitingOn: [] },
        { name: 'test', waitingOn: [] },
      ],
    };
    expect((await graphql(app, QUERY, { variables: { id } })).data?.['run']).toEqual(empty);
    const past = QUERY.replace('id: $id', 'id: $id, atVersion: 2');
    expect((await graphql(app, past, { variables: { id } })).data?.['run']).toEqual(empty);
    expect(world.owner.asked).not.toContain('waits');
    const running = makeRun([happened.queued('build', 'test'), happened.started('build'), happened.started('test')]);
    expect((await graphql(app, QUERY, { variables: { id: running } })).data?.['run']).toEqual(empty);
  });

  it('says so where the owner does not answer', { timeout: 60_000 }, async () => {
    const app = await world.gateway();
    const id = makeRun([happened.queued('build')]);
    world.owner.refusals.set('waits', { code: 'UNAVAILABLE', message: 'no' });
    const { data } = await graphql(app, QUERY, { variables: { id } });
    expect(data?.['run']).toMatchObject({ waitingOn: [{ kind: 'broker', holder: null }] });
    world.owner.refusals.clear();
    world.owner.mute.add('waits');
    const muted = await graphql(app, QUERY, { variables: { id } });
    expect(muted.data?.['run']).toMatchObject({ stages: [{ waitingOn: [{ kind: 'broker' }] }, {}] });
  });

  it('of more than an owner can look at for one answer is told as far as that goes, and of the others that it is to be asked for alone', async () => {
    const app = await world.gateway();
    world.owner.waitsAtOnce = 1;
    for (let count = 0; count < 30; count++) makeRun([happened.queued('build')]);
    const { data, errors } = await graphql(app, `{ runs(limit: 30) { ${FIELDS} } }`);
    expect(errors).toEqual([]);
    const runs = data?.['runs'] as { waitingOn: { kind: string; message: string }[] }[];
    const kinds = runs.map(({ waitingOn: [first] }) => first);
    const told = kinds.filter((first) => first?.kind === 'no_runner').length;
    expect(told).toBeGreaterThan(0);
    expect(kinds.filter((first) => first?.message.includes('Ask for this run alone'))).toHaveLength(30 - told);
    expect(told).toBeLessThan(30);
  });
});
