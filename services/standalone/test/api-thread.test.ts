/** The API's thread from the engine's side: its start, its death, and what it may ask of the engine. */
import { once } from 'node:events';
import { queryObjects } from 'node:v8';
import type { MessagePort } from 'node:worker_threads';
import { NotFound, Unavailable } from '@penstock/errors';
import { BadFile, GitError, type MirrorCache } from '@penstock/git';
import { parsePipeline, recall, type ParseResult } from '@penstock/pipeline';
import { silentLog, type Log } from '@penstock/telemetry/log';
import { afterEach, describe, expect, it } from 'vitest';
import { ApiThread } from '../src/api/api-thread.ts';
import { mirrorCalls, mirrorsByCalls } from '../src/api/mirror-calls.ts';
import type { ApiOptions } from '../src/api/start-api.ts';

const DOUBLE = new URL('./fixtures/api-double.ts', import.meta.url);
const ADDRESS = { url: 'https://host/repository', commit: 'c1', key: 'a' };

let thread: ApiThread | undefined;
afterEach(() => thread?.close());

function options(jwtSecret: string): ApiOptions {
  return { listen: { host: '127.0.0.1', port: 0 }, jwtSecret } as unknown as ApiOptions;
}

/** Counts its fetches; `readFile` gives the name of the first path. */
function mirrors(overrides: Partial<Pick<MirrorCache, 'fetch' | 'findRef'>> = {}) {
  const fetched: string[] = [];
  return {
    fetched,
    cache: {
      fetch: ({ commit }: { readonly commit: string }) => {
        fetched.push(commit);
        return Promise.resolve({
          readFile: (paths: readonly string[]) => Promise.resolve({ path: paths[0] ?? '', text: 'text' }),
          message: () => Promise.resolve('a message'),
        });
      },
      findRef: () => Promise.resolve(null),
      ...overrides,
    } as unknown as MirrorCache,
  };
}

const engine = (cache: MirrorCache) => ({ mirrors: cache, figures: async () => [], link: () => {} });

describe('the thread of the API', () => {
  it('listens where it is told to, and reads repositories through the mirrors of the engine', async () => {
    const { cache, fetched } = mirrors();
    thread = new ApiThread(silentLog, { worker: DOUBLE });
    expect(await thread.start(options('fine'), { servers: '' }, engine(cache))).toBe('http://127.0.0.1/text');
    expect(fetched).toEqual(['c1']);
  });

  it('tells of files that it has read before it asks for their runs, so that they need not be read again (READFILES-1)', async () => {
    const text = 'pipeline: {name: read-by-the-api}\nstages: {constructor: {run: "true"}}\n';
    expect(recall(text)).toBeUndefined();
    thread = new ApiThread(silentLog, { worker: DOUBLE });
    const knownWhenAsked = Promise.withResolvers<ParseResult | undefined>();
    const link = (line: MessagePort): void =>
      void line.on('message', (message: unknown) => {
        if (message === 'its run is asked for') knownWhenAsked.resolve(recall(text));
      });
    await thread.start(options('reads'), { servers: '' }, { ...engine(mirrors().cache), link });
    const known = await knownWhenAsked.promise;
    expect(known).toEqual(parsePipeline(text));
    const [stage] = known?.ok === true ? known.definition.stages : [];
    expect(Object.getPrototypeOf(stage?.env)).toBeNull();
  });

  it('gives each of its lives an end of the line between the buses', async () => {
    const lines: MessagePort[] = [];
    const again = Promise.withResolvers<void>();
    const link = (port: MessagePort): void => void (lines.push(port) === 2 && again.resolve());
    thread = new ApiThread(silentLog, { worker: DOUBLE });
    await thread.start(options('die once'), { servers: '' }, { ...engine(mirrors().cache), link });
    const [first] = lines;
    if (first !== undefined) await once(first, 'close');
    await again.promise;
    expect(new Set(lines).size).toBe(2);
  });

  it('is started again on the same port when it dies, and the cause is logged', async () => {
    const restarted = Promise.withResolvers<void>();
    const logged = Promise.withResolvers<string>();
    const log: Log = { ...silentLog, error: (_fields, message) => logged.resolve(message ?? '') };
    let starts = 0;
    const { cache } = mirrors();
    const counting = {
      ...cache,
      fetch: (address: Parameters<MirrorCache['fetch']>[0]) => {
        starts += 1;
        if (starts === 2) restarted.resolve();
        return cache.fetch(address);
      },
    } as MirrorCache;
    thread = new ApiThread(log, { worker: DOUBLE });
    await thread.start(options('die once'), { servers: '' }, engine(counting));
    expect(await logged.promise).toBe('the thread of the API ended; it is being started again');
    await expect(restarted.promise).resolves.toBeUndefined();
  });

  it('is ended and started again when its loop stands still', async () => {
    const restarted = Promise.withResolvers<void>();
    const logged: (string | undefined)[] = [];
    const log: Log = { ...silentLog, error: (_fields, message) => void logged.push(message) };
    const { cache, fetched } = mirrors();
    const counting = {
      ...cache,
      fetch: (address: Parameters<MirrorCache['fetch']>[0]) => {
        if (fetched.length === 1) restarted.resolve();
        return cache.fetch(address);
      },
    } as MirrorCache;
    thread = new ApiThread(log, { worker: DOUBLE, watch: { everyMs: 20, looksMax: 10 } });
    await thread.start(options('hang once'), { servers: '' }, engine(counting));
    await restarted.promise;
    expect(logged.slice(0, 2)).toEqual([
      'the thread of the API does not answer; it is ended',
      'the thread of the API ended; it is being started again',
    ]);
  });

  it('answers the runner, which gives the bytes of an upload away and is told of refusals and of its death', async () => {
    thread = new ApiThread(silentLog, { worker: DOUBLE });
    await thread.start(options('fine'), { servers: '' }, engine(mirrors().cache));
    const [part, small] = [new Uint8Array(1_000), new Uint8Array(10)];
    expect(await thread.keep('here', 'upload.1', { offset: 0, data: part })).toEqual({
      ...{ runner: 'here', verb: 'upload.1', length: 1_000 },
    });
    expect(await thread.keep('here', 'put', { data: small })).toMatchObject({ length: 10 });
    expect([part.length, small.length]).toEqual([0, 10]);
    await expect(thread.keep('here', 'refuse', {})).rejects.toThrow(NotFound);
    await expect(thread.keep('here', 'die', {})).rejects.toThrow(Unavailable);
  });

  it('keeps nothing of what was answered', async () => {
    thread = new ApiThread(silentLog, { worker: DOUBLE });
    await thread.start(options('fine'), { servers: '' }, engine(mirrors().cache));
    const ask = async (times: number): Promise<number> => {
      for (let count = 0; count < times; count += 1) await thread?.keep('here', 'put', { data: new Uint8Array(1) });
      return queryObjects(Promise, { format: 'count' });
    };
    const before = await ask(50);
    expect((await ask(300)) - before).toBeLessThan(150);
  });

  it('is told that the server stops, and goes on', async () => {
    const told = Promise.withResolvers<string>();
    const { cache } = mirrors({
      fetch: ({ commit }) => {
        if (commit === 'stopping') told.resolve(commit);
        return mirrors().cache.fetch({ url: '', commit });
      },
    });
    thread = new ApiThread(silentLog, { worker: DOUBLE });
    await thread.start(options('fine'), { servers: '' }, engine(cache));
    thread.announceStop();
    await expect(told.promise).resolves.toBe('stopping');
  });

  it('gives the cause where it cannot start, and closes all the same', async () => {
    thread = new ApiThread(silentLog, { worker: DOUBLE });
    await expect(thread.start(options('refuse'), { servers: '' }, engine(mirrors().cache))).rejects.toThrow(
      'the address is taken',
    );
  });
});

describe('mirrors that are asked from another thread', () => {
  it('fetch once for a commit that is read several times, and anew when they are told to fetch', async () => {
    const { cache, fetched } = mirrors();
    const remote = mirrorsByCalls(mirrorCalls(cache));
    const commit = await remote.fetch(ADDRESS);
    expect(await commit.readFile(['a', 'b'], 10)).toEqual({ path: 'a', text: 'text' });
    expect(await commit.message()).toBe('a message');
    expect(fetched).toEqual(['c1']);
    await remote.fetch(ADDRESS);
    expect(fetched).toEqual(['c1', 'c1']);
  });

  it('refuse with the error that the owner of the run is to read, of its own class', async () => {
    const cause = new Error('git fetch ended with code 128: fatal: could not read Username');
    const error = new GitError('denied', 'the host wants credentials', { cause });
    const denied = mirrors({ fetch: () => Promise.reject(error) });
    const remote = mirrorsByCalls(mirrorCalls(denied.cache));
    await expect(remote.fetch(ADDRESS)).rejects.toThrow(GitError);
    await expect(remote.fetch(ADDRESS)).rejects.toMatchObject({
      code: 'denied',
      message: 'the host wants credentials',
      cause: { message: cause.message },
    });
    const link = mirrors({
      fetch: () =>
        Promise.resolve({ readFile: () => Promise.reject(new BadFile('.pipeline.yaml', 'is a link')) }) as never,
    });
    const file = (await mirrorsByCalls(mirrorCalls(link.cache)).fetch(ADDRESS)).readFile(['.pipeline.yaml'], 10);
    await expect(file).rejects.toThrow(BadFile);
    await expect(file).rejects.toMatchObject({ path: '.pipeline.yaml', message: '.pipeline.yaml is a link' });
  });
});
