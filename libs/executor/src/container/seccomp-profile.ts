/**
 * What podman's containers may ask of the kernel: what the engine's own profile allows, without what a sandbox refuses too
 * (`system/system-calls.ts`): other namespaces, mounts, keys, tracing, io_uring. That of docker lies inside its engine, and
 * refuses most of it by itself.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { CALLS, NEW_NAMESPACES, NEW_TIME } from '../system/system-calls.ts';

/** Where podman looks for it, in this order. */
const PROFILES = ['/etc/containers/seccomp.json', '/usr/share/containers/seccomp.json'];
const EPERM = 1;
const ENOSYS = 38;

interface Rule {
  readonly names?: readonly string[];
  readonly [field: string]: unknown;
}

export interface SeccompProfile {
  readonly syscalls: readonly Rule[];
  readonly [field: string]: unknown;
}

/** Undefined where the engine has none in a file that we can read: then it keeps to the one inside it. */
export function writeSeccompProfile(path: string, from: readonly string[] = PROFILES): string | undefined {
  for (const file of from) {
    let profile: SeccompProfile;
    try {
      profile = JSON.parse(readFileSync(file, 'utf8')) as SeccompProfile;
    } catch {
      continue;
    }
    if (!Array.isArray(profile.syscalls)) continue;
    writeFileSync(path, JSON.stringify(withoutRefused(profile)), { mode: 0o600 });
    return path;
  }
  return undefined;
}

/** Of the same call an engine takes one answer alone: what is refused is in no other rule. */
export function withoutRefused(profile: SeccompProfile): SeccompProfile {
  const refused = [...new Set(Object.values(CALLS).flatMap((calls) => Object.keys(calls.refused)))];
  const ours = new Set([...refused, 'clone', 'clone3', 'unshare']);
  const kept = profile.syscalls
    .map((rule) => ({ ...rule, names: (rule.names ?? []).filter((name) => !ours.has(name)) }))
    .filter(({ names }) => names.length > 0);
  return {
    ...profile,
    syscalls: [
      ...kept,
      { names: refused, action: 'SCMP_ACT_ERRNO', errnoRet: EPERM, args: [] },
      // Its flags stand where no filter can look; its caller tries `clone` next.
      { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: ENOSYS, args: [] },
      withoutFlags('clone', NEW_NAMESPACES),
      withoutFlags('unshare', NEW_NAMESPACES | NEW_TIME),
    ],
  };
}

/** What the default answers else. */
function withoutFlags(name: string, flags: number): Rule {
  const argument = { index: 0, value: flags, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' };
  return { names: [name], action: 'SCMP_ACT_ALLOW', args: [argument] };
}
