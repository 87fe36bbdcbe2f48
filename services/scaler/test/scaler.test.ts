import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { silentLog } from '@penstock/telemetry/log';
import { Scaler } from '../src/scaler.ts';

const COOLDOWN_MS = 300_000;

/** A target that does as it is told, a demand that is the test's to say, and a clock that is it too. */
class World {
  stages: number | Error = 0;
  replicas: number;
  now = 0;
  readonly scaler: Scaler;

  constructor({ replicas = 0, min = 0, max = 4 }: { replicas?: number; min?: number; max?: number } = {}) {
    this.replicas = replicas;
    this.scaler = new Scaler({
      target: {
        read: () => Promise.resolve(this.replicas),
        write: (wanted) => {
          this.replicas = wanted;
          return Promise.resolve();
        },
      },
      demand: () => (this.stages instanceof Error ? Promise.reject(this.stages) : Promise.resolve(this.stages)),
      ...{ slots: 8, min, max, cooldownMs: COOLDOWN_MS, log: silentLog, now: () => this.now },
    });
  }

  async looks(stages: number | Error, afterMs = 5_000): Promise<number> {
    this.now += afterMs;
    this.stages = stages;
    await this.scaler.look();
    return this.replicas;
  }
}

describe('the scaler', () => {
  it('makes as many runners as the stages need at once, from none, and no more than it may', async () => {
    const world = new World();
    expect(await world.looks(0)).toBe(0);
    expect(await world.looks(1)).toBe(1);
    expect(await world.looks(8)).toBe(1);
    expect(await world.looks(9)).toBe(2);
    expect(await world.looks(1_000)).toBe(4);
    expect(world.scaler.problem).toBeUndefined();
  });

  it('takes some away only when fewer would have done for the whole cooldown', async () => {
    const world = new World();
    await world.looks(30);
    expect(await world.looks(0)).toBe(4);
    expect(await world.looks(10, COOLDOWN_MS / 2)).toBe(4);
    // The last that wanted four is over; two are wanted since.
    expect(await world.looks(0, COOLDOWN_MS / 2)).toBe(2);
    expect(await world.looks(0, COOLDOWN_MS)).toBe(0);
  });

  it('keeps those that were there when it began, and after looks that failed, for a cooldown', async () => {
    const world = new World({ replicas: 3 });
    expect(await world.looks(0)).toBe(3);
    expect(await world.looks(new Error('away'), COOLDOWN_MS)).toBe(3);
    expect(world.scaler.problem).toBe('away');
    expect(await world.looks(0)).toBe(3);
    expect(await world.looks(0, COOLDOWN_MS)).toBe(0);
  });

  it('keeps as few and as many as it is told to', async () => {
    const world = new World({ replicas: 9, min: 2, max: 4 });
    expect(await world.looks(0)).toBe(4);
    expect(await world.looks(0, COOLDOWN_MS)).toBe(2);
  });

  it('SCALER-2: never has fewer than any look of the last cooldown wanted', async () => {
    const looks = fc.array(fc.tuple(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 1, max: COOLDOWN_MS })), {
      minLength: 1,
      maxLength: 30,
    });
    await fc.assert(
      fc.asyncProperty(looks, async (steps) => {
        const world = new World();
        const seen: { at: number; wanted: number }[] = [];
        for (const [stages, afterMs] of steps) {
          const replicas = await world.looks(stages, afterMs);
          seen.push({ at: world.now, wanted: Math.min(4, Math.ceil(stages / 8)) });
          const recent = seen.filter(({ at }) => world.now - at < COOLDOWN_MS).map(({ wanted }) => wanted);
          expect(replicas).toBe(Math.max(...recent));
        }
      }),
    );
  });
});
