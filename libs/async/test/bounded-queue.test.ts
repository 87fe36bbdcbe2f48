import { describe, expect, it } from 'vitest';
import { BoundedQueue } from '../src/index.ts';

/** Pieces of work that begin when the queue lets them, and end when the test says so. */
class Work {
  readonly began: string[] = [];
  readonly #ends = new Map<string, () => void>();

  piece(name: string): () => Promise<string> {
    return async () => {
      this.began.push(name);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#ends.set(name, resolve);
      await promise;
      return name;
    };
  }

  end(name: string): void {
    this.#ends.get(name)?.();
  }
}

describe('a bounded queue', () => {
  it('begins at most so many pieces at once, the others in the order of asking', async () => {
    const work = new Work();
    const queue = new BoundedQueue({ atOnce: 2 });
    const results = ['a', 'b', 'c', 'd'].map((name) => queue.run(work.piece(name)));
    expect(work.began).toEqual(['a', 'b']);
    work.end('b');
    expect(await results[1]).toBe('b');
    await expect.poll(() => work.began).toEqual(['a', 'b', 'c']);
    for (const name of ['a', 'c']) work.end(name);
    await Promise.all([results[0], results[2]]);
    await expect.poll(() => work.began).toEqual(['a', 'b', 'c', 'd']);
    work.end('d');
    expect(await Promise.all(results)).toEqual(['a', 'b', 'c', 'd']);
  });

  it('QUEUE-2: refuses a piece where too many wait already', async () => {
    const work = new Work();
    const queue = new BoundedQueue({ atOnce: 1, waiting: { max: 1, refusal: () => new Error('too many wait') } });
    const results = ['a', 'b'].map((name) => queue.run(work.piece(name)));
    await expect(queue.run(work.piece('c'))).rejects.toThrow('too many wait');
    work.end('a');
    await expect.poll(() => work.began).toEqual(['a', 'b']);
    const next = queue.run(work.piece('d'));
    work.end('b');
    await expect.poll(() => work.began).toEqual(['a', 'b', 'd']);
    work.end('d');
    expect(await Promise.all([...results, next])).toEqual(['a', 'b', 'd']);
  });

  it('QUEUE-1: a caller whose signal aborts gives up waiting, and the others keep their order', async () => {
    const work = new Work();
    const queue = new BoundedQueue({ atOnce: 1 });
    const stop = new AbortController();
    const first = queue.run(work.piece('a'));
    const second = queue.run(work.piece('b'), stop.signal);
    const third = queue.run(work.piece('c'));
    const reason = new Error('the client has gone');
    stop.abort(reason);
    await expect(second).rejects.toBe(reason);
    work.end('a');
    await first;
    await expect.poll(() => work.began).toEqual(['a', 'c']);
    work.end('c');
    expect(await third).toBe('c');
  });

  it('QUEUE-1: a piece that has begun keeps its place when its signal aborts', async () => {
    const work = new Work();
    const queue = new BoundedQueue({ atOnce: 1 });
    const stop = new AbortController();
    const first = queue.run(work.piece('a'), stop.signal);
    const second = queue.run(work.piece('b'));
    stop.abort(new Error('given up'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(work.began).toEqual(['a']);
    work.end('a');
    expect(await first).toBe('a');
    await expect.poll(() => work.began).toEqual(['a', 'b']);
    work.end('b');
    expect(await second).toBe('b');
  });

  it('does not begin work for a signal that has aborted already', async () => {
    const work = new Work();
    const reason = new Error('given up before');
    await expect(new BoundedQueue({ atOnce: 1 }).run(work.piece('a'), AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(work.began).toEqual([]);
  });

  it('goes on after a piece that failed', async () => {
    const queue = new BoundedQueue({ atOnce: 1 });
    const failed = queue.run(() => Promise.reject(new Error('broken')));
    const next = queue.run(() => Promise.resolve(7));
    await expect(failed).rejects.toThrow('broken');
    expect(await next).toBe(7);
  });
});
