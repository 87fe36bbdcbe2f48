/** How an engine is asked, without one. */
import { describe, expect, it } from 'vitest';
import { podmanDialect } from '../../src/container/dialects.ts';
import type { EngineCall, EngineClient } from '../../src/container/engine-client.ts';
import { Confined, type Holders } from '../../src/container/confined.ts';
import { Engine, type ContainerRequest } from '../../src/container/engine.ts';

class Client {
  readonly asked: { readonly name: unknown; readonly answer: PromiseWithResolvers<null> }[] = [];

  readonly paths: string[] = [];

  removalFails = false;

  json({ method, path, body }: EngineCall): Promise<unknown> {
    this.paths.push(`${method} ${path}`);
    if (method === 'DELETE' && this.removalFails) return Promise.reject(new Error('it is busy'));
    if (body === undefined) return Promise.resolve(null);
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

/** Of a stage that nobody stops. */
const wanted = new AbortController().signal;
const inside = { uid: 1000, gid: 1000 };
const holders: Holders = { hold: () => Promise.resolve(), letGo: () => {}, leftBehind: () => {} };

describe('podman is asked for a container', () => {
  it('whose user has a number of its own inside only once it has answered for the one before, well or not; for others at once', async () => {
    const client = new Client();
    const engine = new Engine(client as unknown as EngineClient, podmanDialect);
    const asked = (): unknown[] => client.asked.map(({ name }) => name);
    const made = ['a', 'b', 'c'].map((name) => engine.create(request(name, inside), wanted));
    void engine.create(request('plain'), wanted);
    await expect.poll(asked).toEqual(['plain', 'a']);
    client.asked[1]?.answer.reject(new Error('refused'));
    await expect(made[0]).rejects.toThrow('refused');
    await expect.poll(asked).toEqual(['plain', 'a', 'b']);
    client.asked[2]?.answer.resolve(null);
    await made[1];
    await expect.poll(asked).toEqual(['plain', 'a', 'b', 'c']);
  });

  it('that is not wanted any more neither while its turn is to come nor then, and the next has its turn', async () => {
    const client = new Client();
    const engine = new Engine(client as unknown as EngineClient, podmanDialect);
    const stop = new AbortController();
    const made = engine.create(request('a', inside), wanted);
    const stopped = Confined.make(engine, request('stopped', inside), holders, stop.signal);
    const next = engine.create(request('next', inside), wanted);
    await expect.poll(() => client.paths).toHaveLength(1);
    stop.abort(new Error('the stage was stopped'));
    await expect(stopped).rejects.toThrow('the stage was stopped');
    // Not even a removal: an engine that hangs is not waited for.
    expect(client.paths).toHaveLength(1);
    client.asked[0]?.answer.resolve(null);
    await made;
    await expect.poll(() => client.asked.map(({ name }) => name)).toEqual(['a', 'next']);
    client.asked[1]?.answer.resolve(null);
    await next;
    expect(client.paths).toHaveLength(2);
  });

  it('and one that cannot be removed after a failed start is told as left behind, so that the next start sweeps it', async () => {
    const client = new Client();
    client.removalFails = true;
    const engine = new Engine(client as unknown as EngineClient, podmanDialect);
    const left: unknown[] = [];
    const made = Confined.make(engine, request('a'), { ...holders, leftBehind: (why) => void left.push(why) }, wanted);
    await expect.poll(() => client.asked).toHaveLength(1);
    client.asked[0]?.answer.reject(new Error('no space'));
    await expect(made).rejects.toThrow('no space');
    expect(left).toEqual([new Error('it is busy')]);
  });

  it('and what was made after its stage was stopped is removed, and never started', async () => {
    const client = new Client();
    const engine = new Engine(client as unknown as EngineClient, podmanDialect);
    const stop = new AbortController();
    const stopped = Confined.make(engine, request('a', inside), holders, stop.signal);
    await expect.poll(() => client.asked).toHaveLength(1);
    stop.abort(new Error('the stage was stopped'));
    client.asked[0]?.answer.resolve(null);
    await expect(stopped).rejects.toThrow('the stage was stopped');
    expect(client.paths).toEqual([expect.stringMatching(/^POST .*create/u), expect.stringMatching(/^DELETE .*\/a\?/u)]);
  });
});
