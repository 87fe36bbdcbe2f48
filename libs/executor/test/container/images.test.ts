/** The images of a machine, without an engine. */
import { expect, it } from 'vitest';
import type { Engine, ImageDescription } from '../../src/container/engine.ts';
import { Images } from '../../src/container/images.ts';

const wanted = new AbortController().signal;
const image = { name: 'node', pull: 'always' } as const;
const described: ImageDescription = { id: 'id', argv: [], user: '' };

it('are brought by one pull at a time; who is stopped waits for nobody’s, and the next one still has its turn', async () => {
  const pulls: PromiseWithResolvers<void>[] = [];
  const engine: Pick<Engine, 'imageOf' | 'pull'> = {
    imageOf: () => Promise.resolve(described),
    pull: () => {
      const pull = Promise.withResolvers<void>();
      pulls.push(pull);
      return pull.promise;
    },
  };
  const images = new Images(engine as Engine);
  const have = (signal: AbortSignal) => images.have(image, 'key', signal, () => {});
  const stop = new AbortController();
  const [first, stopped, next] = [have(wanted), have(stop.signal), have(wanted)];
  await expect.poll(() => pulls.length).toBe(1);
  stop.abort(new Error('the stage was stopped'));
  await expect(stopped).rejects.toThrow('the stage was stopped');
  expect(pulls).toHaveLength(1);
  pulls[0]?.resolve();
  expect(await first).toEqual(described);
  await expect.poll(() => pulls.length).toBe(2);
  pulls[1]?.resolve();
  expect(await next).toEqual(described);
});
