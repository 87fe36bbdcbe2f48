import { Unavailable } from '@penstock/errors';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { placeOf } from '../src/model/lane-name.ts';
import type { Delivery } from '../src/model/delivery.ts';
import { githubPull, githubPush } from './repository.ts';
import { makeWorld, type World } from './world.ts';

/** More than an ingest holds heads of, or notes lanes of. */
const NUMBERS = 9_000;
const COMMIT = 'a'.repeat(40);

let world: World;

beforeAll(async () => {
  world = await makeWorld();
});
afterAll(() => world.close());

it('thousands of pull requests of one repository, of which none can be processed, keep no push of another from its run', async () => {
  const refuse = ({ url }: { readonly url: string }): Promise<never> =>
    Promise.reject(new Unavailable(url.endsWith('many') ? 'too many runs of its key are live' : 'away'));
  const ingest = await world.ingest({
    waitSecs: 0,
    mirrors: {
      ...world.mirrors,
      findRef: refuse,
      fetch: (request) => (request.url.endsWith('many') ? refuse(request) : world.mirrors.fetch(request)),
    },
  });
  const pull = (number: number) => githubPull({ url: 'file:///many', repository: 'acme/many', commit: COMMIT, number });
  for (let from = 1; from <= NUMBERS; from += 100)
    await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        ingest.send(pull(from + index), { 'x-github-event': 'pull_request', 'x-github-delivery': `${from + index}` }),
      ),
    );
  const push = githubPush({ url: 'file:///nothing/there', repository: 'acme/other', commit: COMMIT });
  const { body } = await ingest.send(push, { 'x-github-event': 'push' });
  await expect
    .poll(() => world.reads.view(String(body.run_id), ['service']), { timeout: 60_000 })
    .toMatchObject({ id: body.run_id, status: 'FAILED' });
}, 180_000);

it('pull requests of a key take turns in a bounded number of lanes, and none in that of a push', () => {
  const laneOf = (key: string, repository: string, number?: number): string =>
    placeOf({
      key,
      provider: 'git_host_a',
      repository,
      cloneUrl: 'https://github.com/a/b',
      verified: 'connection',
      ...(number === undefined ? {} : { pullRequest: { number } }),
    } as Delivery).lane;
  const numbers = Array.from({ length: 5_000 }, (_, number) => number);
  const of = (key: string): Set<string> => new Set(numbers.map((number) => laneOf(key, `acme/${number % 9}`, number)));
  const [mine, yours] = [of('user/me'), of('user/you')];
  expect(mine.size).toBe(256);
  expect(mine.isDisjointFrom(yours)).toBe(true);
  expect(mine.has(laneOf('user/me', 'acme/1'))).toBe(false);
  expect(laneOf('user/me', 'acme/1', 7)).toBe(laneOf('user/me', 'acme/1', 7));
});
