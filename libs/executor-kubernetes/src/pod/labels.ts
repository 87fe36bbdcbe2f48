/** By what our Pods and Secrets are found. */
import { createHash } from 'node:crypto';

const MANAGED = { 'app.kubernetes.io/managed-by': 'penstock', 'app.kubernetes.io/component': 'stage' };

/** How long the lease is under which a Pod was made, milliseconds. */
export const LEASE_ANNOTATION = 'penstock/lease-ms';

/** Of a Secret: the name of its Pod. */
export const POD_LABEL = 'penstock/pod';

/** Selects all Pods of stages, whoever's. */
export const OF_STAGES = selectorOf(MANAGED);

/** A label holds 63 characters of few kinds; what is hashed can be looked for all the same. */
export function labelOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}

export function labelsOfSession(runnerId: string, session: string): Record<string, string> {
  return { ...MANAGED, 'penstock/runner': labelOf(runnerId), 'penstock/session': labelOf(session) };
}

export function selectorOfRunner(runnerId: string): string {
  return selectorOf({ 'penstock/runner': labelOf(runnerId) });
}

/** Of what goes with it. */
export function selectorOfPod(name: string): string {
  return selectorOf({ [POD_LABEL]: name });
}

export function notOf(pods: readonly string[]): string {
  return `${POD_LABEL} notin (${pods.join(',')})`;
}

function selectorOf(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
}
