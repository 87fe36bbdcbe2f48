import { describe, expect, it } from 'vitest';
import { wantedBy } from '../src/index.ts';

const image = { name: 'node' };

describe('what stages ask of their runner', () => {
  it('is their labels, and what the place and the trust of their run ask for', () => {
    expect(wantedBy([{ runsOn: ['linux'] }], true)).toEqual({ labels: ['linux'], set: 'linux', least: undefined });
    expect(wantedBy([{ runsOn: [] }], false).labels).toEqual(['takes=untrusted']);
    expect(wantedBy([{ runsOn: [], place: { image } }], true).labels).toEqual(['takes=image']);
    expect(wantedBy([{ runsOn: [], place: { services: [{ name: 'db', image, env: {} }] } }], false).labels).toEqual([
      'takes=untrusted-image',
    ]);
    expect(wantedBy([{ runsOn: [], place: { network: 'none' } }], true).labels).toEqual(['takes=offline']);
  });

  it('is for those that share a workspace what all of them ask for, for one runner takes them all', () => {
    const stages = [
      { runsOn: ['a'] },
      { runsOn: ['a'], place: { image, resources: { cpu: 2 } } },
      { runsOn: ['a'], place: { resources: { cpu: 1, memoryBytes: 64 } } },
    ];
    expect(wantedBy(stages, true)).toEqual({
      labels: ['a', 'takes=image'],
      set: 'a,takes=image 2 64',
      least: { cpu: 2, memoryBytes: 64 },
    });
    expect(wantedBy(stages, false).labels).toEqual(['a', 'takes=untrusted', 'takes=untrusted-image']);
  });
});
