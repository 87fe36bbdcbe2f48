/**
 * Where a push is cloned from. In development mode that is what the payload says, if it is an address that git can read
 * safely. In production mode the payload only chooses among the allowed hosts: the address is built here, from the host
 * and the repository's path, so that nothing else of what it says reaches git.
 */
import { checkCloneUrl } from '@penstock/git';
import type { DeliveryError } from './errors.ts';
import { gitCodeOf } from './errors.ts';
import type { ClonePolicy } from './ports.ts';
import type { PushEvent } from '../providers/provider.ts';

export type CloneAddress =
  /** `isLocal`: a folder of this machine. */
  | { readonly ok: true; readonly url: string; readonly isLocal: boolean }
  | { readonly ok: false; readonly error: DeliveryError };

/** Two or more names; none is `.` or `..`, begins with a dash, or could be taken for anything but a name. */
const REPOSITORY_PATH = /^(?!.*\.git$)[A-Za-z0-9_][A-Za-z0-9_.-]*(?:\/[A-Za-z0-9_.][A-Za-z0-9_.-]*){1,20}$/u;
const DEFAULT_PORT = 443;

export function cloneAddressOf(push: PushEvent, policy: ClonePolicy): CloneAddress {
  const [offered] = push.cloneUrls;
  let allowed: ReturnType<typeof checkCloneUrl>;
  try {
    allowed = checkCloneUrl(offered, policy);
  } catch (error) {
    if (gitCodeOf(error) !== null && error instanceof Error) return refused(error.message);
    throw error;
  }
  if (policy.mode === 'development') return { ok: true, url: offered, isLocal: allowed.transport === 'file' };
  if (!isAddressable(push.repository)) return refused('the name of the repository cannot be part of an address');
  const host = allowed.host.includes(':') ? `[${allowed.host}]` : allowed.host;
  if (allowed.transport === 'ssh') return { ok: true, url: `ssh://git@${host}/${push.repository}.git`, isLocal: false };
  return {
    ok: true,
    isLocal: false,
    url: `https://${host}${allowed.port === DEFAULT_PORT ? '' : `:${allowed.port}`}/${push.repository}.git`,
  };
}

/** Whether the path of a repository can be part of an address without meaning anything else there. */
export function isAddressable(repository: string): boolean {
  return REPOSITORY_PATH.test(repository) && !repository.split('/').some((name) => name === '.' || name === '..');
}

function refused(message: string): CloneAddress {
  return { ok: false, error: { code: 'address_not_allowed', message } };
}
