import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { groupProcesses, helperRoom, idleHelpersMax } from '../src/executors/idle-helpers.ts';

const GIB = 1024 ** 3;
const plenty = { memoryBytes: 1024 * GIB, processes: Infinity, descriptors: Infinity };

it('as many helpers rest as a small part of the machine can hold, within bounds', () => {
  expect(idleHelpersMax(plenty)).toBe(512);
  expect(idleHelpersMax({ ...plenty, memoryBytes: 8 * GIB })).toBe(163);
  expect(idleHelpersMax({ ...plenty, processes: 1024 })).toBe(64);
  expect(idleHelpersMax({ ...plenty, descriptors: 4096 })).toBe(102);
  expect(idleHelpersMax({ memoryBytes: GIB / 4, processes: 100, descriptors: 256 })).toBe(16);
  expect(idleHelpersMax(helperRoom())).toBeGreaterThanOrEqual(16);
});

it('the bound of a group of processes is found in either version of control groups, and without it there is none', () => {
  const root = mkdtempSync(join(tmpdir(), 'penstock-groups-'));
  try {
    for (const folder of ['pids/service', 'unified']) mkdirSync(join(root, folder), { recursive: true });
    writeFileSync(join(root, 'pids/service/pids.max'), '1000\n');
    writeFileSync(join(root, 'unified/pids.max'), '300\n');
    expect(groupProcesses(root, '4:memory:/x\n3:cpu,pids:/service\n')).toBe(1000);
    expect(groupProcesses(root, '0::/unified\n3:pids:/service\n')).toBe(300);
    writeFileSync(join(root, 'unified/pids.max'), 'max\n');
    expect(groupProcesses(root, '0::/unified\n')).toBe(Infinity);
    expect(groupProcesses(root, '')).toBe(Infinity);
  } finally {
    rmSync(root, { recursive: true });
  }
});
