import type { ExecutorKind, IsolationLevel } from '@penstock/executor';
import { leastIsolation } from '../src/executors/find-executors.ts';
import { expect, it } from 'vitest';
import { executorLabels } from '../src/executors/executor-labels.ts';

const EVERYTHING = [
  'takes=image',
  'takes=offline',
  'takes=untrusted',
  'takes=untrusted-image',
  'takes=untrusted-offline',
];

it.each<[ExecutorKind[], IsolationLevel, string[]]>([
  [['process'], 'none', ['executor=process', 'takes=untrusted']],
  [['process'], 'sandbox', ['executor=process']],
  [
    ['process', 'sandbox'],
    'sandbox',
    ['executor=process', 'executor=sandbox', 'takes=offline', 'takes=untrusted', 'takes=untrusted-offline'],
  ],
  [['process', 'container'], 'none', ['executor=container', 'executor=process', ...EVERYTHING]],
])('%j, where strangers get %s, is told by its labels', (kinds, untrusted, labels) => {
  expect(
    executorLabels(
      kinds.map((kind) => ({ kind })),
      untrusted,
    ).toSorted(),
  ).toEqual(labels.toSorted());
});

it('in production mode a stage of an untrusted run wants a sandbox at least, whatever this machine has', () => {
  expect(leastIsolation(undefined, 'production')).toBe('sandbox');
  expect(leastIsolation(undefined, 'development')).toBe('none');
  expect(leastIsolation('none', 'production')).toBe('none');
});
