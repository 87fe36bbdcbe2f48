/** The stages of a run as they are drawn. */
import { describe, expect, it } from 'vitest';
import { layOut, NODE } from '../app/run/graph-layout.ts';
import { criticalPath, nodesOf, type Stage } from '../app/run/stage-groups.ts';

const at = (seconds: number): string => new Date(seconds * 1_000).toISOString();

function stage(name: string, after: readonly string[] = [], changes: Partial<Stage> = {}): Stage {
  return {
    name,
    after,
    status: 'SUCCESS',
    startedAt: null,
    finishedAt: null,
    reason: null,
    attempt: 1,
    exitCode: null,
    adopted: false,
    gate: null,
    approvals: [],
    tests: null,
    waitingOn: [],
    ...changes,
  };
}

const matrix = (count: number, after: readonly string[] = []): Stage[] =>
  Array.from({ length: count }, (_, index) => stage(`test (n=${index})`, after));

describe('the nodes of a graph', () => {
  it('are one for a large matrix, of the status that asks for attention most', () => {
    const members = matrix(9, ['build']).map((each, index) =>
      index === 4 ? { ...each, status: 'FAILED' as const } : each,
    );
    const nodes = nodesOf([stage('build'), ...members, stage('ship', ['test'])], new Set());
    expect(nodes.map(({ name, after, status, isFolded }) => [name, after, status, isFolded])).toEqual([
      ['build', [], 'SUCCESS', false],
      ['test', ['build'], 'FAILED', true],
      ['ship', ['test'], 'SUCCESS', false],
    ]);
  });

  it('are the members of a small matrix, and of one that is unfolded', () => {
    for (const [members, unfolded] of [
      [matrix(2), new Set<string>()],
      [matrix(9), new Set(['test'])],
    ] as const) {
      const nodes = nodesOf([...members, stage('ship', ['test'])], unfolded);
      expect(nodes.at(-1)?.after).toEqual(members.map(({ name }) => name));
    }
  });
});

it('the critical path goes back from the last stage to end along those that ended last before it', () => {
  const ran = (from: number, to: number): Partial<Stage> => ({ startedAt: at(from), finishedAt: at(to) });
  const stages = [
    stage('quick', [], ran(0, 1)),
    stage('slow', [], ran(0, 9)),
    stage('test (a=1)', ['quick', 'slow'], ran(9, 10)),
    stage('test (a=2)', ['quick', 'slow'], ran(9, 20)),
    stage('beside', ['quick'], ran(1, 5)),
    stage('ship', ['test'], ran(20, 30)),
    stage('skipped', ['ship'], { status: 'SKIPPED', finishedAt: at(31) }),
  ];
  expect([...criticalPath(stages)].toSorted()).toEqual(['ship', 'slow', 'test (a=2)']);
});

describe('a graph', () => {
  it('has each node behind all that it comes after, and none over another', () => {
    const nodes = [
      { name: 'd', after: ['b', 'c'] },
      { name: 'a', after: [] },
      { name: 'b', after: ['a'] },
      { name: 'c', after: ['a', 'gone'] },
    ];
    const { places, edges, width, height } = layOut(nodes);
    const x = (name: string): number => places.get(name)?.x ?? Number.NaN;
    expect([x('a') < x('b'), x('b') === x('c'), x('c') < x('d')]).toEqual([true, true, true]);
    expect(edges.map(({ from, to }) => `${from} ${to}`).toSorted()).toEqual(['a b', 'a c', 'b d', 'c d']);
    expect(new Set([...places.values()].map((place) => `${place.x} ${place.y}`)).size).toBe(4);
    expect([width > x('d') + NODE.width, height > NODE.height]).toEqual([true, true]);
  });

  it('is laid out also where it is a chain of two thousand, or has a circle', () => {
    const chain = Array.from({ length: 2_000 }, (_, index) => ({
      name: `${index}`,
      after: index === 1_999 ? [] : [`${index + 1}`],
    }));
    expect(layOut(chain).places.size).toBe(2_000);
    expect(
      layOut([
        { name: 'a', after: ['b'] },
        { name: 'b', after: ['a'] },
      ]).places.size,
    ).toBe(2);
    expect(layOut([]).edges).toEqual([]);
  });
});
