/** How an engine is asked, without one. */
import { describe, expect, it } from 'vitest';
import { podmanDialect } from '../../src/container/dialects.ts';
import type { EngineCall, EngineClient } from '../../src/container/engine-client.ts';
import { Engine, type ContainerRequest } from '../../src/container/engine.ts';

class Client {
  readonly asked: { readonly name: unknown; readonly answer: PromiseWithResolvers<null> }[] = [];

  json({ body }: EngineCall): Promise<unknown> {
    const answer = Promise.withResolvers<null>();
    this.asked.push({ name: (body as { readonly name: string }).name, answer });
    return answer.promise;
  }
}

const request = (name: string, isOwnerInside?: ContainerRequest['isOwnerInside']): ContainerRequest => ({
  ...{ name, image: 'i', labels: {}, argv: ['sh'], env: {}, isOwnerInside, mounts: [], hosts: [], capabilities: [] },
  network: { kind: 'own' },
  limits: { processesMax: 1, openFilesMax: 1, userProcessesMax: 1 },
});

describe('podman is asked for a container', () => {
  it('whose user has a number of its own inside only once it has answered for the one before, well or not; for others at once', async () => {
    const client = new Client();
    const engine = new Engine(client as unknown as EngineClient, podmanDialect);
    const asked = (): unknown[] => client.asked.map(({ name }) => name);
    const inside = { uid: 1000, gid: 1000 };
    const made = ['a', 'b', 'c'].map((name) => engine.create(request(name, inside)));
    void engine.create(request('plain'));
    await expect.poll(asked).toEqual(['plain', 'a']);
    client.asked[1]?.answer.reject(new Error('refused'));
    await expect(made[0]).rejects.toThrow('refused');
    await expect.poll(asked).toEqual(['plain', 'a', 'b']);
    client.asked[2]?.answer.resolve(null);
    await made[1];
    await expect.poll(asked).toEqual(['plain', 'a', 'b', 'c']);
  });
});
