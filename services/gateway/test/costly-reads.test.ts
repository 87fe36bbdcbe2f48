/** Queries that ask for much: what is too much is refused, and what is not is answered without holding anybody else up. */
import type { FastifyInstance } from 'fastify';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { FULL, makeCostlyWorld, RUNS, STAGES } from './costly-world.ts';
import { graphql, type World } from './harness.ts';

let world: World;
let ids: readonly string[];
beforeAll(async () => {
  ({ world, ids } = await makeCostlyWorld());
}, 60_000);
afterEach(() => world.reset());
afterAll(() => world.close());

/** How often `/health` is answered, one after the other, until the query is. */
async function healthAnswersDuring(app: FastifyInstance, query: Promise<unknown>): Promise<number> {
  let answers = 0;
  let isOver = false;
  const over = query.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    expect((await app.inject({ url: '/health' })).body).toBe('ok');
    await new Promise((resolve) => setImmediate(resolve));
    answers += 1;
  }
  await over;
  return answers;
}

describe('the cost of a query', () => {
  it('15 aliased pages of 100 runs with their stages are refused before anything is read, in whatever form they are asked', async () => {
    const app = await world.gateway();
    const aliases = (page: string): string => Array.from({ length: 15 }, (_, index) => `a${index}: ${page}`).join(' ');
    const inner = '{ id stages { name } }';
    for (const [query, variables] of [
      [`{ ${aliases(`runs(limit: 100) ${inner}`)} }`, {}],
      [`{ ${aliases(`runs(limit: 1000000) ${inner}`)} }`, {}],
      [`query ($l: Int) { ${aliases(`runs(limit: $l) ${inner}`)} }`, { l: 100 }],
      [`query ($l: Int = 100) { ${aliases(`runs(limit: $l) ${inner}`)} }`, {}],
      [`{ ${aliases('runs(limit: 100) { ...r }')} } fragment r on PipelineRun ${inner}`, {}],
      [`{ ${aliases('runs(limit: 100) { id ... on PipelineRun { stages(first: 2000) { name } } }')} }`, {}],
      [`{ ${aliases('pipelineHealth(pipelineName: "demo", limit: 500) { totalRuns }')} }`, {}],
    ] as const) {
      const before = world.owner.asked.length;
      const { data, errors } = await graphql(app, query, { variables });
      expect([query, data, errors[0]?.extensions['code']]).toEqual([query, null, 'BAD_USER_INPUT']);
      expect(errors[0]?.message).toMatch(/costs \d+, and at most 30000 is allowed/u);
      expect(world.owner.asked.length).toBe(before);
    }
    // The same text with another value of its variable is as cheap as that makes it.
    const query = `query ($l: Int) { ${aliases(`runs(limit: $l) ${inner}`)} }`;
    expect((await graphql(app, query, { variables: { l: 1 } })).errors).toEqual([]);
    expect((await graphql(app, query, { variables: { l: 100 } })).data).toBeNull();
  });
});

describe('the events of a whole run', () => {
  it.each([
    'runEvents(id: $id, limit: 1) { version }',
    'run(id: $id, atVersion: 1) { id }',
    'run(id: $id) { stages(first: 1) { attempts { number } } }',
    'run(id: $id) { ...s } } fragment s on PipelineRun { stages(first: 1) { ... { attempts { number } } }',
  ])('are in line as costly queries are, however little is asked of them: %s', async (fields) => {
    const app = await world.gateway();
    const ask = () => graphql(app, `query ($id: String) { ${fields} }`, { variables: { id: ids[0] } });
    const answers = await Promise.all(Array.from({ length: 30 }, ask));
    const codes = answers.map(({ errors }) => errors[0]?.extensions['code']);
    expect(codes.filter((code) => code === 'RATE_LIMITED').length).toBeGreaterThan(0);
    // What is remembered of the text is no lighter.
    const again = await Promise.all(Array.from({ length: 30 }, ask));
    expect(again.some(({ errors }) => errors[0]?.extensions['code'] === 'RATE_LIMITED')).toBe(true);
    expect((await ask()).errors).toEqual([]);
  });

  it('are in line for all addresses of one IPv6 network, which is one client', async () => {
    const app = await world.gateway();
    const payload = {
      query: 'query ($id: String) { runEvents(id: $id, limit: 1) { version } }',
      variables: { id: ids[0] },
    };
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, index) =>
        app.inject({ method: 'POST', url: '/graphql', remoteAddress: `2001:db8::${index + 1}`, payload }),
      ),
    );
    expect(answers.filter(({ body }) => body.includes('RATE_LIMITED')).length).toBeGreaterThan(0);
  });
});

describe('an answer that would be large', () => {
  it('beyond 8 MiB is BAD_USER_INPUT that says which list to page, and /health answers meanwhile', async () => {
    const app = await world.gateway();
    const asked = graphql(app, `{ runs(limit: 100) { ${FULL} } }`);
    const answers = await healthAnswersDuring(app, asked);
    const { data, errors } = await asked;
    expect(data).toBeNull();
    expect(errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
    expect(errors[0]?.message).toMatch(/more than 8 MiB.*'runs\.stages'.*'before'.*'first' and 'after'/u);
    // At the least once a run that was read.
    expect(answers).toBeGreaterThan(RUNS);
  });

  it('below it is answered whole, and the last byte is as it should be', async () => {
    const app = await world.gateway();
    const asked = graphql(app, `{ runs(limit: 10) { ${FULL} } }`);
    const answers = await healthAnswersDuring(app, asked);
    const { data, errors } = await asked;
    expect(errors).toEqual([]);
    const runs = data?.['runs'] as { id: string; stages: { name: string; outputs: object[] }[] }[];
    expect(runs.map(({ id }) => id)).toEqual(ids.slice(-10).toReversed());
    expect(runs.every(({ stages }) => stages.length === STAGES)).toBe(true);
    expect(runs.at(-1)?.stages.at(-1)).toMatchObject({
      name: `test (shard=${STAGES - 1})`,
      outputs: [{ key: 'report', value: `reports/${STAGES - 1}.xml` }],
    });
    expect(answers).toBeGreaterThan(10);
  });

  it('pages of stages bring all of what one answer cannot', async () => {
    const app = await world.gateway();
    const query = `query ($after: String) { runs(limit: 10) { id stages(first: 100, after: $after) { name outputs { value } } } }`;
    const { data, errors } = await graphql(app, query, { variables: { after: `test (shard=${STAGES - 51})` } });
    expect(errors).toEqual([]);
    const runs = data?.['runs'] as { stages: { name: string }[] }[];
    expect(runs.map(({ stages }) => stages.length)).toEqual(Array.from({ length: 10 }, () => 50));
    expect(runs[0]?.stages[0]?.name).toBe(`test (shard=${STAGES - 50})`);
  });

  it('runs without their stages are a light answer, however many stages they have', async () => {
    const app = await world.gateway();
    const { data, errors } = await graphql(app, '{ runs(limit: 100) { id status } }');
    expect(errors).toEqual([]);
    expect(data?.['runs']).toHaveLength(RUNS);
  });
});
