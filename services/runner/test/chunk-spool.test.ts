import { appendFileSync, mkdtempSync, openSync, closeSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ChunkSpool, chunksIn } from '../src/report/chunk-spool.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-spool-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function fileOf(...chunks: readonly string[]): string {
  const path = join(folder, 'chunks');
  const spool = new ChunkSpool(path);
  for (const chunk of chunks) spool.put(Buffer.from(chunk));
  spool.close();
  return path;
}

const textsIn = (path: string): string[] => Array.from(chunksIn(path), (chunk) => Buffer.from(chunk).toString());

it('a file has the chunks that were put into it, and half a one at its end is none', () => {
  const path = fileOf('one', '', 'three');
  expect(textsIn(path)).toEqual(['one', '', 'three']);
  appendFileSync(path, Buffer.from([9, 0, 0, 0, 0x66]));
  expect(textsIn(path)).toEqual(['one', '', 'three']);
  appendFileSync(path, Buffer.from('our'));
  expect(textsIn(path)).toEqual(['one', '', 'three']);
});

it('of a file no more is in memory than the chunk that was asked for: it may have half a gigabyte', () => {
  const path = fileOf('one', 'two');
  const chunks = chunksIn(path)[Symbol.iterator]();
  expect(Buffer.from(chunks.next().value ?? []).toString()).toBe('one');
  // What changes on disk now is what is read next.
  const fd = openSync(path, 'r+');
  writeSync(fd, 'TWO', 4 + 3 + 4);
  closeSync(fd);
  expect(Buffer.from(chunks.next().value ?? []).toString()).toBe('TWO');
  expect(chunks.next().done).toBe(true);
});
