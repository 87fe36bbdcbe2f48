import { expect, it } from 'vitest';
import { Frames } from '../src/sse/frame-memory.ts';

const LOUD = 100_000;

it('FRAMEMEMORY-1: memory of frames is used again once all who hold it have let go, and not before', () => {
  const first = Frames.of(Buffer.alloc(LOUD, 'a'));
  first.hold();
  first.letGo();
  const second = Frames.of(Buffer.alloc(LOUD, 'b'));
  expect(first.bytes.equals(Buffer.alloc(LOUD, 'a'))).toBe(true);
  first.letGo();
  const third = Frames.of(Buffer.alloc(LOUD, 'c'));
  expect(third.bytes.buffer).toBe(first.bytes.buffer);
  expect(second.bytes.equals(Buffer.alloc(LOUD, 'b'))).toBe(true);
});

it('frames are a copy of their own, of whatever size they are', () => {
  for (const size of [0, 1, 32 * 1024, 128 * 1024, 1024 * 1024]) {
    const source = Buffer.alloc(size, 'x');
    const frames = Frames.of(source);
    source.fill('y');
    expect(frames.bytes.equals(Buffer.alloc(size, 'x'))).toBe(true);
    frames.letGo();
  }
});

it('few frames take no more memory than they need', () => {
  const { bytes } = Frames.of(Buffer.alloc(20_000));
  expect(bytes.buffer.byteLength).toBe(bytes.length);
});
