/** What each tier allows. One table, which a file (`SERVICE_TIERS_FILE`) can override in part. */
import { readFileSync } from 'node:fs';
import { systemReason } from '@penstock/errors';
import { ConfigurationError } from './errors.ts';

export const TIER_NAMES = ['free', 'pro', 'team', 'enterprise'] as const;
type TierName = (typeof TIER_NAMES)[number];

export interface TierLimits {
  /** Runs a calendar month in UTC. */
  readonly pipelineRunLimit: number;
  /** Runs at a time; further ones wait as QUEUED. */
  readonly maxConcurrent: number;
  /** Slots that a key may have while others wait; 0: as `SERVICE_KEY_SLOTS` says. */
  readonly keySlots: number;
  /** Bytes of output kept for one attempt of a stage. */
  readonly logBytesMax: number;
  readonly artifactStorageMb: number;
  /** Of all versions that a tenant has published. */
  readonly packageStorageMb: number;
  /** Days that a run is kept once it has ended; 0: as `SERVICE_RETENTION` says. */
  readonly retentionDays: number;
  /** Newest runs of each pipeline that are kept whatever their age; 0: as `SERVICE_RETENTION_RUNS` says. */
  readonly retentionRuns: number;
  readonly canUsePrivateExtensions: boolean;
  readonly canPublishExtensions: boolean;
}

/** Stands for "no limit" wherever a client needs a number. */
export const UNLIMITED = 2_147_483_647;

/** They are read at once by their index. */
const RETENTION_RUNS_MAX = 1_000;

const MIB = 1024 * 1024;

const BUILT_IN: Readonly<Record<TierName, TierLimits>> = {
  free: {
    pipelineRunLimit: 500,
    maxConcurrent: 3,
    keySlots: 0,
    logBytesMax: 4 * MIB,
    artifactStorageMb: 500,
    packageStorageMb: 500,
    retentionDays: 0,
    retentionRuns: 0,
    canUsePrivateExtensions: false,
    canPublishExtensions: false,
  },
  pro: {
    pipelineRunLimit: 5_000,
    maxConcurrent: 20,
    keySlots: 0,
    logBytesMax: 16 * MIB,
    artifactStorageMb: 10_000,
    packageStorageMb: 10_000,
    retentionDays: 0,
    retentionRuns: 0,
    canUsePrivateExtensions: true,
    canPublishExtensions: true,
  },
  team: {
    pipelineRunLimit: 50_000,
    maxConcurrent: 100,
    keySlots: 0,
    logBytesMax: 64 * MIB,
    artifactStorageMb: 100_000,
    packageStorageMb: 100_000,
    retentionDays: 0,
    retentionRuns: 0,
    canUsePrivateExtensions: true,
    canPublishExtensions: true,
  },
  enterprise: {
    pipelineRunLimit: UNLIMITED,
    maxConcurrent: UNLIMITED,
    keySlots: 0,
    logBytesMax: 256 * MIB,
    artifactStorageMb: UNLIMITED,
    packageStorageMb: UNLIMITED,
    retentionDays: 0,
    retentionRuns: 0,
    canUsePrivateExtensions: true,
    canPublishExtensions: true,
  },
};

export interface Tiers {
  /** Of an unknown tier, those of `free`. */
  limitsOf(tier: string): TierLimits;
}

/** What the sender of a new run says of the tier that the run counts against; the run's owner enforces it. */
export type RunLimits = Pick<TierLimits, 'pipelineRunLimit' | 'maxConcurrent'> & {
  readonly keySlots?: number | undefined;
  readonly artifactBytes?: number | undefined;
  readonly retentionDays?: number | undefined;
  readonly retentionRuns?: number | undefined;
};

/** Undefined: nothing has to be counted, because there is no tier or it has no limits. */
export function runLimitsOf(tiers: Tiers, tier: string | undefined): RunLimits | undefined {
  if (tier === undefined) return undefined;
  const { pipelineRunLimit, maxConcurrent, keySlots, artifactStorageMb, retentionDays, retentionRuns } =
    tiers.limitsOf(tier);
  const keepsAll = artifactStorageMb >= UNLIMITED;
  const keepsAsSet = retentionDays === 0 && retentionRuns === 0;
  if (pipelineRunLimit >= UNLIMITED && maxConcurrent >= UNLIMITED && keySlots === 0 && keepsAll && keepsAsSet)
    return undefined;
  return {
    pipelineRunLimit,
    maxConcurrent,
    ...(keySlots === 0 ? {} : { keySlots }),
    ...(retentionDays === 0 ? {} : { retentionDays }),
    ...(retentionRuns === 0 ? {} : { retentionRuns: Math.min(retentionRuns, RETENTION_RUNS_MAX) }),
    ...(keepsAll ? {} : { artifactBytes: artifactStorageMb * 1_000_000 }),
  };
}

/** Throws ConfigurationError for a file that cannot be read or says what no tier has; `file` absent: the built-in limits. */
export function loadTiers(file?: string): Tiers {
  const tiers = file === undefined ? BUILT_IN : overridden(file);
  return { limitsOf: (tier) => tiers[isTier(tier) ? tier : 'free'] };
}

function isTier(name: string): name is TierName {
  return (TIER_NAMES as readonly string[]).includes(name);
}

/** `{"free": {"pipelineRunLimit": 100}}`: only what differs need stand there. */
function overridden(file: string): Readonly<Record<TierName, TierLimits>> {
  let given: unknown;
  try {
    given = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new ConfigurationError([`SERVICE_TIERS_FILE: ${file} cannot be read as JSON (${systemReason(error)})`]);
  }
  const problems: string[] = [];
  const result = { ...BUILT_IN };
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new ConfigurationError([`SERVICE_TIERS_FILE: ${file} must hold a JSON object whose keys are tiers`]);
  for (const [tier, limits] of Object.entries(given)) {
    if (!isTier(tier)) {
      problems.push(`SERVICE_TIERS_FILE: '${tier}' is no tier; there are ${TIER_NAMES.join(', ')}`);
    } else if (typeof limits !== 'object' || limits === null || Array.isArray(limits)) {
      problems.push(`SERVICE_TIERS_FILE: '${tier}' is to be an object of limits`);
    } else {
      problems.push(...Object.entries(limits).flatMap(([name, value]) => limitProblem(tier, name, value)));
      result[tier] = { ...BUILT_IN[tier], ...(limits as Partial<TierLimits>) };
    }
  }
  if (problems.length > 0) throw new ConfigurationError(problems);
  return result;
}

function limitProblem(tier: TierName, name: string, value: unknown): string[] {
  const known = Object.hasOwn(BUILT_IN[tier], name) ? BUILT_IN[tier][name as keyof TierLimits] : undefined;
  if (known === undefined)
    return [`SERVICE_TIERS_FILE: '${tier}.${name}' is no limit; there are ${Object.keys(BUILT_IN[tier]).join(', ')}`];
  if (typeof known === 'boolean')
    return typeof value === 'boolean' ? [] : [`SERVICE_TIERS_FILE: '${tier}.${name}' is to be true or false`];
  const fits = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= UNLIMITED;
  return fits ? [] : [`SERVICE_TIERS_FILE: '${tier}.${name}' is to be a whole number from 0 to ${UNLIMITED}`];
}
