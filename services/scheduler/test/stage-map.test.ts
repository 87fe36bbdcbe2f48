/** A map by run and stage, however it keeps the one that nearly every run has: the same calls on it and on a plain map, in a random order. */
import type { RunId } from '@penstock/run';
import { expect, it } from 'vitest';
import { StageMap } from '../src/run/stage-map.ts';

const CALLS = 20_000;

it('has what was set last of each stage of each run, until it is deleted', () => {
  const stages = new StageMap<number>();
  const known = new Map<string, number>();
  const runs = Array.from({ length: 20 }, (_, run) => ({ id: `run-${run}` as RunId }));
  let state = 7;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  for (let call = 0; call < CALLS; call++) {
    const run = runs[random(runs.length)] as { readonly id: RunId };
    const stage = `s${random(3)}`;
    const name = `${run.id} ${stage}`;
    if (random(5) < 3) {
      stages.delete(run, stage);
      known.delete(name);
    } else {
      stages.set(run, stage, call);
      known.set(name, call);
    }
    expect(stages.get(run, stage)).toBe(known.get(name));
    expect(stages.count(run)).toBe([...known.keys()].filter((each) => each.startsWith(`${run.id} `)).length);
    const told = call % 100 === 0 ? [stages.values(), known.values()] : [[], []];
    const [all, wanted] = told.map((values) => [...values].toSorted());
    expect(all).toEqual(wanted);
  }
  stages.clear();
  expect([...stages.values()]).toEqual([]);
});

it('tells each value once while what is at hand is deleted', () => {
  const stages = new StageMap<{ readonly run: { readonly id: RunId }; readonly stage: string }>();
  for (let index = 0; index < 50; index++) {
    const run = { id: `run-${index}` as RunId };
    for (const stage of ['s0', 's1', 's2'].slice(0, 1 + (index % 3))) stages.set(run, stage, { run, stage });
  }
  const told = new Set<string>();
  for (const { run, stage } of stages.values()) {
    told.add(`${run.id} ${stage}`);
    stages.delete(run, stage);
  }
  expect(told.size).toBe(99);
  expect([...stages.values()]).toEqual([]);
});
