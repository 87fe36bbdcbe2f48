import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cachedDataVersionTag } from 'node:v8';
import { heapOfThread, IdleMemory, type HeapOfThread } from '../src/idle-memory.ts';

const MIB = 1024 * 1024;

function heap({ busy = 0.01, held = 60 * MIB, used = 30 * MIB, young = MIB } = {}) {
  const state = { busy, held, used, young, collections: 0, ofYoung: 0, canCollect: true };
  const port: HeapOfThread = {
    busyShare: () => state.busy,
    bytes: () => ({ held: state.held, used: state.used, young: state.young }),
    collect: (which) => {
      if (!state.canCollect) return false;
      if (which === 'young') {
        state.ofYoung += 1;
        state.young = MIB;
        return true;
      }
      state.collections += 1;
      state.held = 35 * MIB;
      return true;
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

  it('IDLEMEMORY-3: gives back the room for what has just been made, where nothing else is to be had and nothing is done', () => {
    const { state, memory } = heap({ young: 30 * MIB });
    memory.look();
    expect(state).toMatchObject({ collections: 1, ofYoung: 0 });
    state.busy = 0.5;
    memory.look();
    expect(state.ofYoung).toBe(0);
    state.busy = 0.01;
    memory.look();
    memory.look();
    expect(state).toMatchObject({ collections: 1, ofYoung: 1 });
  });

  it('tries again where it could not collect', () => {
    const { state, memory } = heap();
    state.canCollect = false;
    expect(memory.look()).toBe(false);
    state.canCollect = true;
    expect(memory.look()).toBe(true);
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
      expect(thread.collect('young')).toBe(true);
      expect(thread.collect('all')).toBe(true);
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

describe('forgetCompiled', () => {
  it('keeps what a start has compiled for the next one, however the process ends', () => {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-compiled-'));
    try {
      const source = new URL('../src/idle-memory.ts', import.meta.url).href;
      const program = `const { forgetCompiled } = await import(${JSON.stringify(source)}); forgetCompiled(); process.kill(process.pid, 'SIGKILL');`;
      spawnSync(process.execPath, ['--input-type=module', '--eval', program], {
        env: { ...process.env, NODE_COMPILE_CACHE: folder },
      });
      const kept = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
      expect(kept.length).toBeGreaterThan(0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
