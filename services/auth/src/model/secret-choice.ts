/** Which of a tenant's secrets a stage gets by a name, and why it gets none. Pure. */
import type { Slip } from '@penstock/bus';
import { GlobList } from '@penstock/pipeline';
import { SERVICE_TENANT } from '@penstock/run';
import { isSame, type KeptSecret } from './stage-secrets.ts';

export type Choice = { readonly secret: KeptSecret } | { readonly why: string };

/** What began a run in which somebody pushed, or dispatched, a ref; nobody else's word for a ref counts. */
const TRIGGERS_WITH_REF: ReadonlySet<string> = new Set(['push', 'schedule', 'dispatch']);

export function chooseSecret(name: string, slip: Slip, kept: readonly KeptSecret[]): Choice {
  if (!slip.trusted) return { why: 'a run that is not trusted gets no secrets' };
  const repository = repositoryOf(slip);
  const [secret] = kept
    .filter((each) => each.name === name && isMeant(each, slip, repository))
    .toSorted((a, b) => widthOf(a) - widthOf(b));
  if (secret === undefined) return { why: `there is none for ${repository ?? 'runs without a repository'}` };
  // What the repository trusts itself with is not for a file that it does not have.
  if (slip.edited === true && (secret.repository !== '' || secret.refs !== null))
    return { why: 'it is of the repository, and the run has another file than that' };
  if (secret.refs === null || matchesRef(secret.refs, slip)) return { secret };
  return { why: `it is given at ${secret.refs.join(', ')} alone, and not ${placeOf(slip)}` };
}

/** For who reads a connected repository: of the tenant or of that repository, and for whatever ref. */
export function chooseCloneSecret(name: string, repository: string, kept: readonly KeptSecret[]): Choice {
  const [secret] = kept
    .filter((each) => each.name === name && each.pipeline === '')
    .filter((each) => each.repository === '' || isSame(each.repository, repository))
    .toSorted((a, b) => widthOf(a) - widthOf(b));
  if (secret === undefined)
    return {
      why: `there is no secret ${name} for ${repository}: set it (penstock secret set ${name}), or name another for the connection (setCloneSecret)`,
    };
  if (secret.refs === null) return { secret };
  return {
    why: `the secret ${name} is given at ${secret.refs.join(', ')} alone, and a repository is read for every ref: set it without refs`,
  };
}

function repositoryOf({ provider, repository }: Slip): string | undefined {
  return repository === undefined ? undefined : `${provider ?? ''}/${repository}`;
}

function isMeant(secret: KeptSecret, { tenant, pipeline }: Slip, repository: string | undefined): boolean {
  if (secret.repository !== '' && (repository === undefined || !isSame(secret.repository, repository))) return false;
  if (secret.pipeline !== '' && secret.pipeline !== pipeline) return false;
  // Whoever may push to any repository could call a pipeline so.
  return tenant !== SERVICE_TENANT || secret.repository !== '' || repository === undefined;
}

/** The narrower wins: one for a repository and a pipeline, for a repository, for a pipeline, for all. */
function widthOf({ repository, pipeline }: KeptSecret): number {
  return (repository === '' ? 2 : 0) + (pipeline === '' ? 1 : 0);
}

function matchesRef(patterns: readonly string[], { trigger, ref }: Slip): boolean {
  if (ref === undefined || !TRIGGERS_WITH_REF.has(trigger)) return false;
  const name = ref.replace(/^refs\/(?:heads|tags)\//, '');
  const [full, short] = [patterns.filter(isFull), patterns.filter((pattern) => !isFull(pattern))];
  return (
    (full.length > 0 && new GlobList(full).includes(ref)) || (short.length > 0 && new GlobList(short).includes(name))
  );
}

function isFull(pattern: string): boolean {
  return pattern.startsWith('refs/');
}

function placeOf({ trigger, ref }: Slip): string {
  return ref !== undefined && TRIGGERS_WITH_REF.has(trigger) ? `at ${ref}` : 'to a run that was not begun by a push';
}
