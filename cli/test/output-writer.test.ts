import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { OutputWriter } from '../src/output/output-writer.ts';

describe('what goes to a terminal', () => {
  let folder: string;
  let fd: number;
  let out: OutputWriter;
  const written = (): string => readFileSync(join(folder, 'out'), 'utf8');
  const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  async function until(text: string): Promise<void> {
    while (written() !== text) await turn();
  }

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    folder = mkdtempSync(join(tmpdir(), 'penstock-output-'));
    fd = openSync(join(folder, 'out'), 'w');
    out = new OutputWriter(fd);
  });
  afterEach(() => {
    vi.useRealTimers();
    closeSync(fd);
    rmSync(folder, { recursive: true });
  });

  it('goes at once after a pause, and with what follows within some milliseconds', async () => {
    out.append(Buffer.from('one\n'));
    await until('one\n');
    // Its end has been told as well.
    for (let turns = 0; turns < 20; turns += 1) await turn();
    for (const text of ['two\n', 'three\n']) {
      out.append(Buffer.from(text));
      await turn();
    }
    expect(written()).toBe('one\n');
    vi.advanceTimersByTime(10);
    await until('one\ntwo\nthree\n');
    vi.advanceTimersByTime(10);
    out.append(Buffer.from('four\n'));
    await until('one\ntwo\nthree\nfour\n');
  });

  it('waits for nothing once a block is full, or all is to be written', async () => {
    out.append(Buffer.from('one\n'));
    await until('one\n');
    out.append(Buffer.alloc(100_000, 'x'));
    while (written().length < 4 + 64 * 1024) await turn();
    await out.flush();
    expect(written().length).toBe(100_004);
    out.append(Buffer.from('last\n'));
    await out.flush();
    expect(written().endsWith('xlast\n')).toBe(true);
  });

  it('is dropped with what has waited, once nobody is to wait for the reader', async () => {
    out.append(Buffer.from('one\n'));
    await until('one\n');
    out.append(Buffer.from('two\n'));
    out.discard();
    await out.flush();
    vi.advanceTimersByTime(10);
    for (let turns = 0; turns < 20; turns += 1) await turn();
    expect(written()).toBe('one\n');
  });
});
