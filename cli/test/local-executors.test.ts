import type { ExecutorKind } from '@penstock/executor';
import { expect, it } from 'vitest';
import { lackingOf } from '../src/local/local-executors.ts';

it.each<[ExecutorKind[], string[]]>([
  [['process'], ['image', 'services', 'network']],
  [
    ['process', 'sandbox'],
    ['image', 'services'],
  ],
  [['process', 'container'], []],
])('with %j a file asks in vain for %j', (kinds, keys) => {
  expect([...lackingOf(kinds.map((kind) => ({ kind }))).keys()]).toEqual(keys);
});
