/**
 * The file that a repository runs at a branch or a tag, for who wants a run of it without a push.
 *
 *  FILE-1 A user gets the file of a repository that the user has connected, from the host where that was proved; whoever has the API key
 *     of one that the server takes pushes of.
 *  FILE-2 What is read where only an unsigned push said that the repository is counts as that push does: it is not trusted.
 */
import { cloneSecretRemedy, type FileRequest, type RepositoryFile } from '@penstock/bus';
import { BadUserInput, Forbidden, NotFound, Unavailable } from '@penstock/errors';
import { tenantOfUser } from '@penstock/identity';
import { GlobList, PIPELINE_FILES, PIPELINE_LIMITS, type TemplateValues } from '@penstock/pipeline';
import { keyOf, SERVICE_TENANT } from '@penstock/run';
import { LOCK_NAME } from '@penstock/extension';
import { isAddressable } from '../model/clone-address.ts';
import type { ConnectionsRepository } from '../model/connections-repository.ts';
import type { DeliveriesRepository } from '../model/deliveries-repository.ts';
import type { Delivery } from '../model/delivery.ts';
import { gitCodeOf } from '../model/errors.ts';
import type { ClonePolicy, FetchedCommit, RefSource } from '../model/ports.ts';
import { toldOf, type OwnCredential } from '../model/clone-credentials.ts';
import { hostsToAsk, placeToShow, type HomeHosts } from '../model/proof.ts';
import { checkedNames } from '../providers/names.ts';
import type { ProviderName } from '../providers/provider.ts';
import { findInPlaces } from './ref-search.ts';
import { LOCK_BYTES_MAX, readPipeline, SERVER_TEMPLATE, type DecisionSources } from './decide.ts';

export interface RepositoryFileSources extends DecisionSources {
  readonly connections: ConnectionsRepository;
  readonly deliveries: DeliveriesRepository;
  readonly refs: RefSource;
  readonly policy: ClonePolicy;
  readonly homes: HomeHosts;
  /** `SERVICE_WEBHOOK_REPOSITORIES`; undefined: all. */
  readonly repositories?: readonly string[] | undefined;
}

type Owner = Pick<Delivery, 'tenant' | 'key' | 'userId' | 'verified'> & { readonly provedHost: string | null };

/** `verified`: what shows that the repository is there. */
interface Address extends Pick<Delivery, 'verified'> {
  readonly url: string;
}

const REF_LENGTH_MAX = 255;
/** What git allows in the name of a ref. */
const REF = /^(?!.*(?:\.\.|@\{|\/\/))[^\s\p{Cc}~^:?*[\\/-][^\s\p{Cc}~^:?*[\\]*(?<![./])$/u;
/** Looked through for what was last said of a repository: its default branch and, in development mode, where it was pushed from. */
const DELIVERIES_LOOKED_AT = 100;

export async function repositoryFile(request: FileRequest, sources: RepositoryFileSources): Promise<RepositoryFile> {
  const { repository } = request;
  const provider = checkedNames(request.provider, repository);
  const refs = refsMeant(request.ref);
  const asked = await ownerOf(provider, request, sources);
  const pushes = await pushesOf(provider, repository, asked, sources);
  const { url, verified, ref, commit, own } = await whereabouts(provider, repository, { refs, pushes }, asked, sources);
  const owner = verified === 'none' ? { ...asked, verified, key: serviceKey(provider, verified, repository) } : asked;
  const read = await orBadInput(async () => {
    const fetched = await sources.mirrors.fetch({ url, commit, key: owner.key, credential: own?.credential });
    return await fileOf(fetched, { provider, repository, ref, commit }, owner, sources);
  }, own);
  if (read === null) throw new BadUserInput(`There is none of ${PIPELINE_FILES.join(', ')} at ${ref}.`);
  if ('problem' in read) throw new BadUserInput(`The pipeline file at ${ref} is bad: ${read.problem}`);
  const { tenant, key } = owner;
  const defaultBranch = pushes.find(
    (push) => push.verified !== 'none' && push.defaultBranch !== undefined,
  )?.defaultBranch;
  return {
    ...{ provider, repository, ref, commit, cloneUrl: url, ...read, tenant, key, trusted: verified !== 'none' },
    ...(defaultBranch === undefined ? {} : { defaultBranch }),
  };
}

/** The full names that a name may stand for, in order. */
function refsMeant(ref: string): readonly string[] {
  if (!REF.test(ref) || ref.length > REF_LENGTH_MAX || !ref.isWellFormed())
    throw new BadUserInput("'ref' must be a branch or a tag, by its name or in full, as in main or refs/tags/v1.");
  if (/^refs\/(?:heads|tags)\/./.test(ref)) return [ref];
  if (ref.startsWith('refs/')) throw new BadUserInput("'ref' must be a branch or a tag: refs/heads/… or refs/tags/….");
  return [`refs/heads/${ref}`, `refs/tags/${ref}`];
}

/** Keeps FILE-1. */
async function ownerOf(
  provider: ProviderName,
  { userId, repository }: FileRequest,
  { connections, policy, repositories }: RepositoryFileSources,
): Promise<Owner> {
  if (userId === undefined) {
    if (repositories !== undefined && !new GlobList(repositories).includes(repository))
      throw new Forbidden(`The repository '${repository}' is not one that this server takes pushes of.`);
    const key = serviceKey(provider, 'server', repository);
    return { tenant: SERVICE_TENANT, key, verified: 'server', provedHost: null };
  }
  const connection = await connections.named(userId, provider, repository);
  if (connection === null)
    throw new NotFound(`You have not connected '${repository}' of ${provider}: call connectRepository first.`);
  if (policy.mode === 'production' && connection.provedHost === null)
    throw new Forbidden(
      `Nothing proves that '${repository}' is yours: push the ref ${connection.proofRef}, then call verifyRepository.`,
    );
  const tenant = tenantOfUser(userId);
  return { tenant, key: tenant, userId, verified: 'connection', provedHost: connection.provedHost };
}

/** That of pushes: a run that somebody asks for is in one group with theirs. */
function serviceKey(provider: ProviderName, verified: 'server' | 'none', repository: string): string {
  const scope = `${provider}/${verified === 'none' ? 'unsigned' : 'signed'}/${repository}`;
  return keyOf({ tenant: SERVICE_TENANT, repository: scope, pipelineName: '' });
}

/** What its hosts have lately said of the repository, the newest first. */
async function pushesOf(
  provider: ProviderName,
  repository: string,
  { tenant }: Owner,
  { deliveries }: RepositoryFileSources,
): Promise<readonly Delivery[]> {
  return (await deliveries.newest([tenant], DELIVERIES_LOOKED_AT))
    .map(({ delivery }) => delivery)
    .filter((delivery) => delivery.provider === provider && delivery.cloneUrl !== '')
    .filter((delivery) => delivery.repository.toLowerCase() === repository.toLowerCase());
}

async function whereabouts(
  provider: ProviderName,
  repository: string,
  { refs, pushes }: { readonly refs: readonly string[]; readonly pushes: readonly Delivery[] },
  owner: Owner,
  sources: RepositoryFileSources,
): Promise<Address & { readonly ref: string; readonly commit: string; readonly own: OwnCredential | undefined }> {
  const all = addressesOf(provider, repository, { ...owner, pushes }, sources);
  const { userId } = owner;
  const [first] = all;
  const own =
    userId === undefined || first === undefined
      ? undefined
      : await orBadInput(() => sources.clones.of({ userId, provider, repository, cloneUrl: first.url }));
  const addresses = own === undefined ? all : placeToShow(all);
  const found = await findInPlaces(addresses, refs, sources.refs, { key: owner.key, credential: own?.credential });
  if (found !== null) return { ...found.place, ref: found.ref, commit: found.commit, own };
  const remedy = own === undefined ? '' : ` (${cloneSecretRemedy(own.name)})`;
  throw new BadUserInput(
    `There is no branch or tag ${refs.join(' or ')} in '${repository}', or it is not to be seen${remedy}.`,
  );
}

/** In development mode a repository is where its last push said: a server of one's own, or a folder. Keeps FILE-2. */
function addressesOf(
  provider: ProviderName,
  repository: string,
  { verified, provedHost, pushes }: Owner & { readonly pushes: readonly Delivery[] },
  { policy, homes }: RepositoryFileSources,
): Address[] {
  if (policy.mode === 'development') {
    const pushed = pushes.find((delivery) => delivery.verified !== 'none') ?? pushes[0];
    if (pushed !== undefined)
      return [{ url: pushed.cloneUrl, verified: pushed.verified === 'none' ? 'none' : verified }];
  }
  if (!isAddressable(repository)) return [];
  const allowed = hostsToAsk(provider, policy, homes);
  const hosts = provedHost !== null ? [provedHost] : allowed.length > 0 ? allowed : [homes[provider]];
  return hosts.map((host) => ({
    url: `https://${host.includes(':') ? `[${host}]` : host}/${repository}.git`,
    verified,
  }));
}

/** Null: the commit has none. */
async function fileOf(
  fetched: FetchedCommit,
  values: TemplateValues,
  owner: Owner,
  sources: RepositoryFileSources,
): Promise<Pick<RepositoryFile, 'source' | 'yaml' | 'extensions'> | { readonly problem: string } | null> {
  const found =
    sources.template === null
      ? await fetched.readFile(PIPELINE_FILES, PIPELINE_LIMITS.textBytesMax)
      : { path: SERVER_TEMPLATE, text: sources.template.filled(values) };
  if (found === null) return null;
  // What the server runs is not the repository's to pin.
  const readLock = async (): Promise<string | null> =>
    sources.template === null ? ((await fetched.readFile([LOCK_NAME], LOCK_BYTES_MAX))?.text ?? null) : null;
  const read = await readPipeline(found.text, readLock, owner, sources);
  return 'problem' in read ? read : { source: found.path, yaml: found.text, extensions: read.extensions };
}

/** What the repository got wrong is who asks to mend; a host that is away is not. */
export async function orBadInput<T>(work: () => Promise<T>, own?: OwnCredential): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const code = gitCodeOf(error);
    if (code === null || code === 'git_unusable') throw error;
    const message = toldOf(error, own);
    if (code === 'unreachable' || code === 'timeout')
      throw new Unavailable('The git host does not answer at the moment; try again.', { cause: error });
    throw new BadUserInput(`The repository could not be read: ${message}`, {}, { cause: error });
  }
}
