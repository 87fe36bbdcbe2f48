import { expect, it } from 'vitest';
import { limitsRemark } from '../src/choice/choice.ts';

it('the log of a stage says that it is held to no limits, where it asks for some and runs as a plain process', () => {
  const place = { resources: { cpu: 2 } };
  expect(limitsRemark('process', place)).toContain('no limits');
  expect(limitsRemark('process', { network: 'open' })).toBeUndefined();
  expect(limitsRemark('sandbox', place)).toBeUndefined();
});
