import { afterAll, beforeAll, expect, it } from 'vitest';
import { FULL, makeCostlyWorld } from './costly-world.ts';
import { graphql, type World } from './harness.ts';

let world: World;
beforeAll(async () => {
  ({ world } = await makeCostlyWorld());
}, 60_000);
afterAll(() => world.close());

it("one caller's many costly queries are in line, and too many are RATE_LIMITED", async () => {
  const app = await world.gateway();
  const query = `{ runs(limit: 100) { ${FULL} } }`;
  const answers = await Promise.all(Array.from({ length: 30 }, () => graphql(app, query)));
  const codes = answers.map(({ errors }) => errors[0]?.extensions['code']);
  expect(new Set(codes)).toEqual(new Set(['BAD_USER_INPUT', 'RATE_LIMITED']));
  expect(answers.find(({ errors }) => errors[0]?.extensions['code'] === 'RATE_LIMITED')?.errors[0]).toMatchObject({
    extensions: { retryAfter: 5 },
  });
  expect((await graphql(app, '{ health }')).data).toEqual({ health: 'ok' });
}, 240_000);
