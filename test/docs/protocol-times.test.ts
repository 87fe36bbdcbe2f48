/** The times of the protocols (libs/bus/src/contract/protocol-times.ts) fit each other, the configuration and docs/protocols.md. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  ACT_WITHIN_MS,
  ARCHIVED_KEPT_MS,
  CREDIT_MS,
  CREDIT_RENEWED_AFTER_MS,
  CREDIT_SPENT_WITHIN_MS,
  FENCE_MS,
  LOGS_READ_WITHIN_MS,
  MEMBERSHIP_MS,
  MEMBERSHIP_RENEWALS,
  RESULT_REPEAT_MS,
  RUN_ID_AHEAD_MS,
  RUNNER_LEASE_MS,
  RUNNER_LEASE_MS_MIN,
  RUNNER_LEASE_RENEWALS,
  WATCH_ASK_MS,
} from '@penstock/bus';
import { readConfiguration } from '@penstock/config';
import { describe, expect, it } from 'vitest';

const text = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'protocols.md'), 'utf8').replace(/\s+/g, ' ');
const seconds = (milliseconds: number): string => `${milliseconds / 1000} s`;

describe('the times of the protocols', () => {
  it('TIMES-1: an owner stops answering before its membership can have ended, and a renewal comes before that', () => {
    expect(ACT_WITHIN_MS).toBeLessThan(MEMBERSHIP_MS);
    expect(MEMBERSHIP_MS / MEMBERSHIP_RENEWALS).toBeLessThan(ACT_WITHIN_MS);
  });

  it('TIMES-2: the shortest lease of a runner leaves time for two renewals before its fence', () => {
    expect((2 * RUNNER_LEASE_MS_MIN) / RUNNER_LEASE_RENEWALS).toBeLessThan(RUNNER_LEASE_MS_MIN - FENCE_MS);
  });

  it('TIMES-3: a credit is renewed before its scheduler lets it be, and let be before its runner refuses it', () => {
    expect(CREDIT_RENEWED_AFTER_MS).toBeLessThan(CREDIT_SPENT_WITHIN_MS);
    expect(CREDIT_SPENT_WITHIN_MS).toBeLessThan(CREDIT_MS);
  });

  it('TIMES-4: what is read of LOGS counts for well under the time that the chunks of an archived run stay there', () => {
    expect(2 * LOGS_READ_WITHIN_MS).toBeLessThan(ARCHIVED_KEPT_MS);
  });

  it('the lease of a runner is the one of the configuration where nobody sets another, and no shorter one is taken', () => {
    const leaseOf = (env: Record<string, string>): number =>
      readConfiguration(['runnerLeaseSecs'], { env }).runnerLeaseSecs * 1000;
    expect(leaseOf({})).toBe(RUNNER_LEASE_MS);
    expect(leaseOf({ SERVICE_RUNNER_LEASE_SECS: String(RUNNER_LEASE_MS_MIN / 1000) })).toBe(RUNNER_LEASE_MS_MIN);
    expect(() => leaseOf({ SERVICE_RUNNER_LEASE_SECS: String(RUNNER_LEASE_MS_MIN / 1000 - 1) })).toThrow(
      'SERVICE_RUNNER_LEASE_SECS',
    );
  });

  it.each([
    `a membership lives ${seconds(MEMBERSHIP_MS)} and is renewed every ${seconds(MEMBERSHIP_MS / MEMBERSHIP_RENEWALS)}`,
    `lease lives L = ${seconds(RUNNER_LEASE_MS)} (\`SERVICE_RUNNER_LEASE_SECS\`) and is renewed every ${seconds(RUNNER_LEASE_MS / RUNNER_LEASE_RENEWALS)}`,
    `or older than ${seconds(RUN_ID_AHEAD_MS)} after its own opening`,
    `no id that is more than ${seconds(RUN_ID_AHEAD_MS)} ahead`,
    `a fence is L - ${seconds(FENCE_MS)}`,
    `was sent less than ${seconds(ACT_WITHIN_MS)} ago`,
    `or ${seconds(CREDIT_MS)} old by the boot clock`,
    `again every ${seconds(RESULT_REPEAT_MS)} until an owner has answered`,
    `and every ${seconds(WATCH_ASK_MS)}.`,
    `less than ${LOGS_READ_WITHIN_MS / 60_000} minutes after`,
    `${ARCHIVED_KEPT_MS / 60_000} minutes where \`LOGS\` is half full`,
  ])('docs/protocols.md says: %s', (words) => {
    expect(text).toContain(words);
  });
});
