/** Whose a container is, by its labels: of which owner, and of which process of that owner. */
import { createHash } from 'node:crypto';
import { bootId, identityOf, isAlive } from '../system/proc.ts';

const OWNER_LABEL = 'penstock.owner';
const PROCESS_LABEL = 'penstock.process';
const SERVICE_LABEL = 'penstock.service';

/** Of containers that this process makes. */
export function labelsOf(owner: string): Readonly<Record<string, string>> {
  const { pid, startTime } = identityOf(process.pid);
  return { [OWNER_LABEL]: hashOf(owner), [PROCESS_LABEL]: `${bootId()} ${pid} ${startTime}` };
}

/** Of a service: it shares the network of another container, which cannot be removed before it. */
export function serviceLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return { ...labels, [SERVICE_LABEL]: 'true' };
}

export function isService(labels: Readonly<Record<string, string>>): boolean {
  return labels[SERVICE_LABEL] !== undefined;
}

/** For the engine's list. */
export function ownerFilter(owner: string): string {
  return `${OWNER_LABEL}=${hashOf(owner)}`;
}

/** Whether the process that made it lives: another's of this owner, then. */
export function isMakerAlive(labels: Readonly<Record<string, string>>): boolean {
  const [boot, pid = '', startTime = ''] = (labels[PROCESS_LABEL] ?? '').split(' ');
  return boot === bootId() && isAlive({ pid: Number(pid), startTime });
}

function hashOf(owner: string): string {
  return createHash('sha256').update(owner).digest('hex').slice(0, 32);
}
