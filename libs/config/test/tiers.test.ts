import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ConfigurationError, loadTiers, runLimitsOf, UNLIMITED } from '../src/index.ts';
import { TIER_NAMES } from '../src/tiers.ts';

const folder = mkdtempSync(join(tmpdir(), 'penstock-tiers-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (text: string): string => {
  const path = join(folder, 'tiers.json');
  writeFileSync(path, text);
  return path;
};
const problemsOf = (text: string): readonly string[] => {
  try {
    loadTiers(file(text));
  } catch (error) {
    if (error instanceof ConfigurationError) return error.problems;
  }
  return [];
};

describe('tiers', () => {
  it('private extensions and publishing begin with pro', () => {
    const tiers = loadTiers();
    expect(TIER_NAMES.map((tier) => tiers.limitsOf(tier).canPublishExtensions)).toEqual([false, true, true, true]);
    expect(TIER_NAMES.map((tier) => tiers.limitsOf(tier).canUsePrivateExtensions)).toEqual([false, true, true, true]);
    expect(tiers.limitsOf('enterprise').pipelineRunLimit).toBe(UNLIMITED);
  });

  it('an unknown tier has the limits of free, whatever its name', () => {
    expect(loadTiers().limitsOf('constructor')).toEqual(loadTiers().limitsOf('free'));
  });

  it('a file overrides single limits', () => {
    const tiers = loadTiers(file('{"free": {"maxConcurrent": 1}}'));
    expect(tiers.limitsOf('free')).toEqual({ ...loadTiers().limitsOf('free'), maxConcurrent: 1 });
    expect(tiers.limitsOf('pro')).toEqual(loadTiers().limitsOf('pro'));
  });

  it('names every problem of a file', () => {
    expect(
      problemsOf('{"gold": {}, "free": {"maxConcurrent": -1, "runs": 3, "canPublishExtensions": "yes"}, "pro": 7}'),
    ).toEqual([
      "SERVICE_TIERS_FILE: 'gold' is no tier; there are free, pro, team, enterprise",
      "SERVICE_TIERS_FILE: 'free.maxConcurrent' is to be a whole number from 0 to 2147483647",
      expect.stringContaining("'free.runs' is no limit"),
      "SERVICE_TIERS_FILE: 'free.canPublishExtensions' is to be true or false",
      "SERVICE_TIERS_FILE: 'pro' is to be an object of limits",
    ]);
    expect(problemsOf('[]')).toHaveLength(1);
    expect(problemsOf('{')).toHaveLength(1);
  });
});

describe('the limits that a new run carries', () => {
  it('are those of the tier that it counts against', () => {
    expect(runLimitsOf(loadTiers(), 'free')).toEqual({
      pipelineRunLimit: 500,
      maxConcurrent: 3,
      artifactBytes: 500_000_000,
    });
  });

  it('are absent without a tier, and for a tier that has none', () => {
    expect(runLimitsOf(loadTiers(), undefined)).toBeUndefined();
    expect(runLimitsOf(loadTiers(), 'enterprise')).toBeUndefined();
  });

  it('are there where one of the two has no limit', () => {
    const tiers = loadTiers(file(`{"free": {"pipelineRunLimit": ${UNLIMITED}}}`));
    expect(runLimitsOf(tiers, 'free')).toEqual({
      pipelineRunLimit: UNLIMITED,
      maxConcurrent: 3,
      artifactBytes: 500_000_000,
    });
  });
});
