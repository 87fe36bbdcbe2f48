import { describe, expect, it } from 'vitest';
import { cachedDataVersionTag } from 'node:v8';
import { heapOfThread, IdleMemory, type HeapOfThread } from '../src/idle-memory.ts';

const MIB = 1024 * 1024;

function heap({ busy = 0.01, held = 60 * MIB, used = 30 * MIB } = {}) {
  const state = { busy, held, used, collections: 0 };
  const port: HeapOfThread = {
    busyShare: () => state.busy,
    bytes: () => ({ held: state.held, used: state.used }),
    collect: () => {
      state.collections += 1;
      state.held = 35 * MIB;
    },
  };
  return { state, memory: new IdleMemory(port) };
}

describe('IdleMemory', () => {
  it('collects what a start has left, once', () => {
    const { state, memory } = heap();
    expect(memory.look()).toBe(true);
    expect(memory.look()).toBe(false);
    expect(state.collections).toBe(1);
  });

  it('IDLEMEMORY-1: collects nothing while the thread works, and does when it has ended that', () => {
    const { state, memory } = heap({ busy: 0.5 });
    expect(memory.look()).toBe(false);
    state.busy = 0.02;
    expect(memory.look()).toBe(true);
  });

  it('IDLEMEMORY-2: collects again where much has come since, counted from the least that was held', () => {
    const { state, memory } = heap();
    memory.look();
    state.held = 42 * MIB;
    expect(memory.look()).toBe(false);
    state.held = 30 * MIB;
    expect(memory.look()).toBe(false);
    state.held = 39 * MIB;
    expect(memory.look()).toBe(true);
    expect(state.collections).toBe(2);
  });

  it('IDLEMEMORY-2: leaves a heap alone that is full of what lives', () => {
    const { state, memory } = heap({ held: 1_000 * MIB, used: 900 * MIB });
    expect(memory.look()).toBe(false);
    expect(state.collections).toBe(0);
  });
});

describe('heapOfThread', () => {
  it('collects what nobody has any more, and leaves the flags as they were', () => {
    const thread = heapOfThread();
    const flags = cachedDataVersionTag();
    let kept: object | undefined = {};
    const reference = new WeakRef(kept);
    kept = undefined;
    // What a WeakRef was made for in this turn lives to its end.
    return new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      thread.collect();
      expect(kept).toBeUndefined();
      expect(reference.deref()).toBeUndefined();
      expect(cachedDataVersionTag()).toBe(flags);
    });
  });

  it('says how much of the time the thread has worked', async () => {
    const thread = heapOfThread();
    thread.busyShare();
    await new Promise<void>((resolve) => setImmediate(resolve));
    const share = thread.busyShare();
    expect(share).toBeGreaterThanOrEqual(0);
    expect(share).toBeLessThanOrEqual(1);
  });
});
