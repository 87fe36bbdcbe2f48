import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { BadUserInput } from '@penstock/errors';
import { describe, expect, it } from 'vitest';
import { PayloadReader } from '../src/intake/payload-reader.ts';
import { github } from '../src/providers/github.ts';
import type { Reading } from '../src/providers/provider.ts';

const MIB = 1024 * 1024;

function push(more: Record<string, unknown>): Buffer {
  return Buffer.from(
    JSON.stringify({
      ref: 'refs/heads/main',
      after: 'c0ffee'.padEnd(40, '0'),
      repository: { full_name: 'o/r', clone_url: 'https://git.example/o/r.git' },
      ...more,
    }),
  );
}

/** Costs the parser most for its bytes: nothing but small objects. */
const crumbs = (bytes: number): Buffer => push({ filler: Array.from({ length: bytes / 10 }, () => ({ a: [{}] })) });

const programUrl = (program: string): URL => new URL(`data:text/javascript,${encodeURIComponent(program)}`);

const read = (reader: PayloadReader, body: Buffer, who = 'somebody'): Promise<Reading> =>
  reader.read(github, 'push', body, () => who);

/** How many turns the event loop makes until the work is done. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    turns += 1;
  }
  await over;
  return turns;
}

describe('a body', () => {
  it('says the same on the thread of large bodies as on this one, and is refused with the same words', async () => {
    const reader = new PayloadReader();
    const commits = [{ id: 'a'.repeat(40), added: ['x'], removed: [], modified: ['y'] }];
    const small = await read(reader, push({ commits }));
    expect(small).toMatchObject({ kind: 'push', push: { repository: 'o/r', paths: ['x', 'y'] } });
    expect(await read(reader, push({ commits, filler: 'x'.repeat(MIB) }))).toEqual(small);
    for (const wrong of [push({ repository: {} }), Buffer.from('[]'), Buffer.from('{"a":')]) {
      const refusals = [wrong, Buffer.concat([wrong, Buffer.alloc(MIB, ' ')])].map(async (body) => {
        const error: unknown = await read(reader, body).catch((refusal: unknown) => refusal);
        return error instanceof BadUserInput ? error.message : error;
      });
      const [here, onThread] = await Promise.all(refusals);
      expect(onThread).toBe(here);
      expect(here).toEqual(expect.any(String));
    }
    await reader.close();
  });

  it('that is large goes to the thread without a copy, unless its memory holds other things too', async () => {
    const reader = new PayloadReader();
    const text = push({ filler: 'x'.repeat(MIB) });
    const own = Buffer.allocUnsafeSlow(text.length);
    text.copy(own);
    const within = Buffer.alloc(text.length + 1).subarray(1);
    text.copy(within);
    expect(await read(reader, own)).toEqual(await read(reader, within));
    expect([own.length, within.equals(text)]).toEqual([0, true]);
    await reader.close();
  });

  it('of 4 MiB that costs the parser much is read while the loop turns', async () => {
    const reader = new PayloadReader();
    await read(reader, push({ filler: 'x'.repeat(MIB) }));
    const reading = read(reader, crumbs(4 * MIB));
    // Parsed here it would be one turn.
    expect(await turnsDuring(reading)).toBeGreaterThan(20);
    expect(await reading).toMatchObject({ kind: 'push' });
    await reader.close();
  });

  it('that is not read in time ends its thread, and the next one gets another', async () => {
    const workerUrl = new URL('data:text/javascript,setInterval(() => {}, 1000)');
    const reader = new PayloadReader({ deadlineMs: 50, workerUrl });
    const large = (): Buffer => push({ filler: 'x'.repeat(MIB) });
    for (let count = 0; count < 2; count++)
      await expect(read(reader, large())).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    // Small ones do not wait for it.
    expect(await read(reader, push({}))).toMatchObject({ kind: 'push' });
    await reader.close();
  });

  it('whose answer comes as it is late already leaves the next one no thread that has ended', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-payload-reader-'));
    const answered = join(folder, 'answered');
    const program = `
      import { pbkdf2Sync } from 'node:crypto';
      import { writeFileSync } from 'node:fs';
      import { parentPort } from 'node:worker_threads';
      parentPort.on('message', () => {
        parentPort.postMessage({ ok: true, reading: { kind: 'ignored' } });
        writeFileSync(${JSON.stringify(answered)}, '');
        // Ends a while after it is told to, as a thread with much in its memory does.
        pbkdf2Sync('a', 'b', 100_000, 64, 'sha512');
      });`;
    const deadlineMs = 1_000;
    const started = once(process, 'worker');
    const reader = new PayloadReader({ deadlineMs, workerUrl: programUrl(program) });
    const reading = read(reader, Buffer.alloc(MIB));
    // Its time runs by now; timers are due at whole milliseconds.
    const late = performance.now() + deadlineMs + 10;
    // As a process that was stopped: when it goes on its timers are due, and what has come meanwhile is looked at after them.
    while (!existsSync(answered) || performance.now() < late);
    expect(await reading).toMatchObject({ kind: 'ignored' });
    const [worker] = (await started) as [Worker];
    if (worker.threadId !== -1) await once(worker, 'exit');
    const next = () => read(reader, Buffer.alloc(MIB));
    await expect.poll(next, { timeout: 20_000 }).toMatchObject({ kind: 'ignored' });
    await reader.close();
    rmSync(folder, { recursive: true });
  });

  it('that breaks its thread is UNAVAILABLE', async () => {
    const reader = new PayloadReader({ workerUrl: new URL('data:text/javascript,throw new Error("broken")') });
    const large = push({ filler: 'x'.repeat(MIB) });
    await expect(read(reader, large)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await reader.close();
  });
});

describe('large bodies of many', () => {
  /** Reads nothing in them. */
  const workerUrl = programUrl(
    `import { parentPort } from 'node:worker_threads';
    parentPort.on('message', () => parentPort.postMessage({ ok: true, reading: { kind: 'ignored' } }));`,
  );

  it('are parsed in turn: whoever sends many, another waits for one of them', async () => {
    const reader = new PayloadReader({ workerUrl });
    const order: string[] = [];
    const send = async (who: string): Promise<void> => {
      await read(reader, Buffer.alloc(MIB), who);
      order.push(who);
    };
    const loud = Array.from({ length: 20 }, () => send('loud'));
    await Promise.all([...loud, send('quiet')]);
    expect(order.slice(0, 3)).toEqual(['loud', 'loud', 'quiet']);
    expect(order).toHaveLength(21);
    await reader.close();
  });

  it('wait within a share for each, which is given back', async () => {
    const reader = new PayloadReader({ workerUrl });
    const large = (): Buffer => Buffer.alloc(25 * MIB);
    const first = read(reader, large(), 'loud');
    await expect(read(reader, large(), 'loud')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(await read(reader, large(), 'quiet')).toMatchObject({ kind: 'ignored' });
    await first;
    expect(await read(reader, large(), 'loud')).toMatchObject({ kind: 'ignored' });
    await reader.close();
  });
});

describe('a signature', () => {
  it('of a large body is checked as that of a small one', async () => {
    for (const body of [push({}), push({ filler: 'x'.repeat(MIB) })]) {
      const proof = `sha256=${createHmac('sha256', 'secret').update(body).digest('hex')}`;
      expect(await github.proves(proof, body, 'secret')).toBe(true);
      expect(await github.proves(proof, body, 'other')).toBe(false);
      expect(
        await github.proves(
          proof.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
          body,
          'secret',
        ),
      ).toBe(false);
    }
  });
});
