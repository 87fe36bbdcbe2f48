/**
 * What a connected repository is read with, where its user has named a secret for that (P31).
 *
 * CLONE-1 It is the secret of the tenant that has connected the repository, by the name that stands with the connection now, read anew
 *     each time: what is taken off, deleted or disconnected is given to nobody any more.
 * CLONE-2 It is for the host on which the connection was proved, as that was asked: by https, or by ssh, on their own ports. By http it would
 *     be everybody's on the way, and another port is another server. Before the proof it is only for who looks for that; in development
 *     mode, where nothing is proved, for whoever reads the repository.
 */
import { type CloneRequest, type CloneSecret, hostOfClone } from '@penstock/bus';
import { tenantOfUser } from '@penstock/identity';
import { cloneSecretsSpec, connectionIdOf, type Collection, type DocumentStore } from '@penstock/store';
import { chooseCloneSecret } from './secret-choice.ts';
import type { StageSecrets } from './stage-secrets.ts';

/** `why`: a clause for who reads the run. */
export type CloneFinding =
  | { readonly kind: 'none' }
  | { readonly kind: 'found'; readonly secret: CloneSecret }
  | { readonly kind: 'refused'; readonly why: string };

/** What hosts take for the user of a token. */
const USERS_OF_TOKENS: ReadonlyMap<string, string> = new Map([
  ['git_host_a', 'x-access-token'],
  ['git_host_b', 'oauth2'],
]);
/** A shorter one could not be masked. */
const PASSWORD_CHARACTERS_MIN = 4;
const PRIVATE_KEY = /^-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----\r?\n/;

type Asked = Omit<CloneRequest, 'sealTo'>;

export class CloneSecrets {
  readonly #named: Collection<typeof cloneSecretsSpec>;
  readonly #secrets: StageSecrets;

  /** The store has to be opened with `cloneSecretsSpec` among its collections. */
  constructor(store: DocumentStore, secrets: StageSecrets) {
    this.#named = store.collection(cloneSecretsSpec);
    this.#secrets = secrets;
  }

  /** Whether one is named for this repository. */
  async isNamed({ userId, provider, repository }: Omit<Asked, 'cloneUrl'>): Promise<boolean> {
    return (await this.#named.get(connectionIdOf(userId, provider, repository))) !== null;
  }

  /** `needsProof`: whoever asks clones, and does not look for the proof. */
  async find({ userId, provider, repository, cloneUrl }: Asked, needsProof: boolean): Promise<CloneFinding> {
    const named = await this.#named.get(connectionIdOf(userId, provider, repository));
    if (named === null) return { kind: 'none' };
    const { name, host } = named;
    const asked = hostOfClone(cloneUrl);
    if (host === '' && needsProof)
      return refused(
        `nothing proves that ${repository} is its user's: push the ref of its proof, then call verifyRepository`,
      );
    if (host !== '' && host !== asked)
      return refused(`the secret ${name} is for ${host}, where the repository was proved, and not for ${asked}`);
    if (host !== '' && !isByOwnPort(cloneUrl))
      return refused(
        `the secret ${name} is for ${host} by https or ssh, as the repository was proved, and not for ${originOf(cloneUrl)}`,
      );
    const kept = await this.#secrets.ofTenant(tenantOfUser(userId));
    const choice = chooseCloneSecret(name, `${provider}/${repository}`, kept);
    if ('why' in choice) return refused(choice.why);
    const bytes = await this.#secrets.open(choice.secret.id);
    if (bytes === null) return refused(`none of the keys in SERVICE_MASTER_KEY opens the secret ${name}: set it anew`);
    const opens = openedBy(Buffer.from(bytes).toString(), provider);
    if (opens === undefined)
      return refused(
        `the secret ${name} is neither a token, nor user:password with ${PASSWORD_CHARACTERS_MIN} characters or more, nor a private key`,
      );
    await this.#secrets.used([choice.secret.id]);
    return { kind: 'found', secret: { name, opens } };
  }
}

function refused(why: string): CloneFinding {
  return { kind: 'refused', why };
}

/** Of an address that has a host. */
function isByOwnPort(cloneUrl: string): boolean {
  const { protocol, port } = new URL(cloneUrl);
  return (protocol === 'https:' && port === '') || (protocol === 'ssh:' && (port === '' || port === '22'));
}

function originOf(cloneUrl: string): string {
  const { protocol, host } = new URL(cloneUrl);
  return `${protocol}//${host}`;
}

/** Undefined: it is nothing that git could show. */
function openedBy(text: string, provider: string): CloneSecret['opens'] | undefined {
  const value = text.trim();
  if (PRIVATE_KEY.test(value)) return { key: `${value.replaceAll('\r\n', '\n')}\n` };
  if (/\p{Cc}/u.test(value)) return undefined;
  const colon = value.indexOf(':');
  if (colon === -1) return { user: USERS_OF_TOKENS.get(provider) ?? 'git', password: value };
  const [user, password] = [value.slice(0, colon), value.slice(colon + 1)];
  return user === '' || password.length < PASSWORD_CHARACTERS_MIN ? undefined : { user, password };
}
