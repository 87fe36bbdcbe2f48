/** Runners of a fleet (P37): what they are called, and what an owner may grant them. */
import { hash } from 'node:crypto';

/**
 * The bucket's value under a runner's id, written by auth for as long as the runner's credentials live. Without one an owner grants
 * the runner nothing.
 */
export interface FleetEntry {
  /** What the runner may offer beside what its machine says of itself; none of the rest counts. */
  readonly labels: readonly string[];
  /** Whether stages of runs that are not trusted may go there. */
  readonly untrusted: boolean;
  /** Whose runs alone it may be given stages of; absent: everybody's. */
  readonly tenant?: string | undefined;
  /** Its token is void: nothing is granted from here on. */
  readonly revoked?: true | undefined;
}

const FORM = /^fr_[0-9a-f]{32}$/u;

export function isFleetRunner(id: string): boolean {
  return FORM.test(id);
}

/** Follows from token and key: nobody else's token makes this id, and nobody without the key can use it. */
export function fleetRunnerId(tokenId: string, publicKey: string): string {
  return `fr_${hash('sha256', `penstock fleet\n${tokenId}\n${publicKey}`, 'hex').slice(0, 32)}`;
}

/** What a runner says of its machine, which nobody has to allow: a system, a processor, an executor. */
const SYSTEMS = new Set(['linux', 'darwin', 'freebsd', 'openbsd', 'win32']);
const PROCESSORS = new Set(['x64', 'arm64', 'arm', 'ia32', 'loong64', 'ppc64', 'riscv64', 's390x']);

/** Of the labels that a runner offers those that its entry lets count. None without an entry: then it is granted nothing. */
export function allowedLabels(entry: FleetEntry, labels: readonly string[]): readonly string[] {
  const given = new Set(entry.labels);
  return labels.filter((label) => {
    if (label.startsWith('takes=untrusted')) return entry.untrusted;
    return (
      given.has(label) ||
      SYSTEMS.has(label) ||
      PROCESSORS.has(label) ||
      label.startsWith('takes=') ||
      label.startsWith('executor=')
    );
  });
}
