import type { ExecutorKind } from '@penstock/executor';
import { parsePipeline } from '@penstock/pipeline';
import { expect, it } from 'vitest';
import { lackingOf, shellsAtOnce } from '../src/local/local-executors.ts';

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

it('shells come up for stages that begin at once as processes, and for no container, gate or later stage', () => {
  const text = [
    'pipeline: {name: p}',
    'stages:',
    '  a: {run: x}',
    '  b: {run: x}',
    '  contained: {image: nowhere, run: x}',
    '  gate: {approval: {message: go on}}',
    '  later: {after: a, run: x}',
  ];
  const parsed = parsePipeline(text.join('\n'));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.diagnostics));
  expect(shellsAtOnce(parsed.definition)).toBe(2);
});
