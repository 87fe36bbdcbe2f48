import { describe, expect, it } from 'vitest';
import { limitsRemark } from '../src/choice/choice.ts';

describe('the log of a stage that asks for limits and runs as a plain process', () => {
  const cpu = { resources: { cpu: 2 } };
  const memory = { resources: { memoryBytes: 64 * 1024 ** 2 } };

  it('says that it is held to none, where nothing bounds plain processes', () => {
    for (const place of [cpu, memory]) expect(limitsRemark('process', place, false)).toContain('no limits');
    expect(limitsRemark('process', { network: 'open' }, false)).toBeUndefined();
    expect(limitsRemark('sandbox', cpu, false)).toBeUndefined();
  });

  it('says nothing of memory on a runner, which bounds it there too, and that processors are bounded on some', () => {
    expect(limitsRemark('process', memory, true)).toBeUndefined();
    expect(limitsRemark('process', { resources: { ...memory.resources, cpu: 2 } }, true)).toContain('processors only');
    expect(limitsRemark('sandbox', cpu, true)).toBeUndefined();
  });
});
