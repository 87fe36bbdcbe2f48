/** Which executor runs a stage: by what it asks for, and by how far its run is trusted. */
import type { Executor, ExecutorKind, IsolationLevel } from '@penstock/executor';
import { describe, expect, it } from 'vitest';
import { type PlacedJob, SessionExecutors } from '../src/executors/session-executors.ts';
import { ExecutorMissing } from '../src/executors/errors.ts';
import { findExecutors } from '../src/executors/find-executors.ts';

const executorOf = (kind: ExecutorKind): Executor => ({
  kind,
  start: () => {
    throw new Error('no stage starts in this test');
  },
  prewarm: () => Promise.resolve(),
  close: () => Promise.resolve(),
});

function chosen(kinds: readonly ExecutorKind[], job: Partial<PlacedJob>, untrusted: IsolationLevel = 'none'): unknown {
  const executors = new SessionExecutors(kinds.map(executorOf), untrusted);
  return executors.assign({ origin: { kind: 'api' }, ...job }).executor?.kind;
}

const untrustedRun = { origin: { kind: 'webhook', trusted: false } } as const;
const image = { name: 'node:26' };

describe('the executor of a stage', () => {
  it('is the most preferred one, where the stage asks for nothing', () => {
    expect(chosen(['process', 'sandbox', 'container'], {})).toBe('process');
    expect(chosen(['sandbox', 'process', 'container'], {})).toBe('sandbox');
  });

  it('can give an image and services, where the stage has them', () => {
    expect(chosen(['process', 'sandbox', 'container', 'kubernetes'], { place: { image } })).toBe('container');
    expect(chosen(['process', 'kubernetes'], { place: { image } })).toBe('kubernetes');
    expect(chosen(['process', 'sandbox', 'container'], { place: { services: [{ name: 'db', image, env: {} }] } })).toBe(
      'container',
    );
    expect(chosen(['process', 'sandbox'], { place: { image } })).toBeUndefined();
  });

  it('can take the network away, where the stage has none', () => {
    expect(chosen(['process', 'sandbox'], { place: { network: 'none' } })).toBe('sandbox');
    expect(chosen(['process'], { place: { network: 'none' } })).toBeUndefined();
  });

  it('holds it to its limits, where one of them can', () => {
    const place = { resources: { memoryBytes: 1024 ** 3 } };
    expect(chosen(['process', 'sandbox'], { place })).toBe('sandbox');
    expect(chosen(['process'], { place })).toBe('process');
  });

  it('isolates a stage that is not trusted at least as far as the machine wants it', () => {
    expect(chosen(['process', 'sandbox', 'container'], untrustedRun)).toBe('process');
    expect(chosen(['process', 'sandbox', 'container'], untrustedRun, 'sandbox')).toBe('sandbox');
    expect(chosen(['process', 'sandbox', 'container'], untrustedRun, 'container')).toBe('container');
    expect(chosen(['process'], untrustedRun, 'sandbox')).toBeUndefined();
    expect(chosen(['process', 'sandbox'], { origin: { kind: 'webhook', trusted: true } }, 'sandbox')).toBe('process');
  });
});

describe('the network of a stage', () => {
  const placeOf = (job: Partial<PlacedJob>, untrusted: IsolationLevel): unknown =>
    new SessionExecutors([executorOf('sandbox')], untrusted).assign({ origin: { kind: 'api' }, ...job }).place;

  it('has public addresses only, where the stage is not trusted and isolated', () => {
    expect(placeOf(untrustedRun, 'sandbox')).toEqual({ network: 'public' });
    expect(placeOf({ ...untrustedRun, place: { network: 'none' } }, 'sandbox')).toEqual({ network: 'none' });
    expect(placeOf({}, 'sandbox')).toBeUndefined();
    expect(placeOf(untrustedRun, 'none')).toBeUndefined();
  });
});

describe('what a runner finds', () => {
  it('is what it was asked for by name, or the start is refused and says what is missing', async () => {
    expect((await findExecutors({ mode: 'development', wanted: ['process'] })).map(({ kind }) => kind)).toEqual([
      'process',
    ]);
    await expect(findExecutors({ mode: 'development', wanted: ['process', 'kubernetes'] })).rejects.toThrow(
      ExecutorMissing,
    );
  });
});
