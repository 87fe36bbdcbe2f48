/**
 * Whether a request comes from whom it says, judged by its raw bytes before anything parses them. A server's own secret
 * is tried first. The secrets of connected repositories are found by the names of repositories that stand in the bytes:
 * a hint only, since who does not have the secret cannot sign whatever stands there.
 */
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { Unavailable } from '@penstock/errors';
import { InvalidSignature } from '../model/errors.ts';
import type { ConnectionSecret, ConnectionsRepository, KnownSecrets } from '../model/connections-repository.ts';
import { LARGE_BYTES, nextPiece } from '../providers/large-work.ts';
import type { Provider, ProviderName } from '../providers/provider.ts';

export type Verified =
  | { readonly by: 'server' }
  | { readonly by: 'connection'; readonly connection: ConnectionSecret }
  | { readonly by: 'none' };

export interface VerificationOptions {
  readonly connections: ConnectionsRepository;
  readonly secrets: { readonly [P in ProviderName]?: string | undefined };
  /** Whether deliveries are taken that nobody has signed, where their own provider has no secret. */
  readonly unsigned: boolean;
}

const SECRET_OF_NOBODY = randomBytes(32).toString('hex');
/** A payload names its repository in a few places, and others it was forked from. */
const NAMES_MAX = 4;
/** More places than any payload has in which a name stands; what is hostile has a hundred thousand. */
const PLACES_MAX = 64;
/** The names stand before the commits, which are the long part. */
const SEARCHED_BYTES = 1024 * 1024;

/** Throws `InvalidSignature`; `Unavailable` where nobody can tell, for the database does not answer. */
export async function verify(
  provider: Provider,
  headers: IncomingHttpHeaders,
  body: Buffer,
  options: VerificationOptions,
): Promise<Verified> {
  const proof = provider.proofOf(headers);
  const own = options.secrets[provider.name];
  if (proof !== undefined) {
    if (own !== undefined && (await provider.proves(proof, body, own))) return { by: 'server' };
    const named = await connectionsNamedIn(provider, body, options.connections);
    const candidates = named.flatMap(({ secrets }) => secrets);
    for (const connection of candidates)
      if (await provider.proves(proof, body, connection.secret)) return { by: 'connection', connection };
    if (named.some(({ mayBeOld }) => mayBeOld))
      throw new Unavailable('The server cannot reach its database at the moment; try again.');
    // Neither the answer nor its time tells a stranger whether somebody has connected the repository: what is signed wrongly
    // is taken as unsigned, or refused, for the one as for the other.
    if (candidates.length === 0) await provider.proves(proof, body, SECRET_OF_NOBODY);
  }
  if (own !== undefined || !options.unsigned) throw new InvalidSignature();
  return { by: 'none' };
}

async function connectionsNamedIn(
  provider: Provider,
  body: Buffer,
  connections: ConnectionsRepository,
): Promise<KnownSecrets[]> {
  const names = new Set<string>();
  for (const part of [
    body.subarray(0, SEARCHED_BYTES),
    body.length > SEARCHED_BYTES ? body.subarray(-SEARCHED_BYTES) : Buffer.alloc(0),
  ]) {
    if (part.length > LARGE_BYTES) await nextPiece();
    const found = part.toString('utf8').matchAll(provider.repositoryPattern).take(PLACES_MAX);
    for (const [, quoted = ''] of found) if (names.size < NAMES_MAX) names.add(unquoted(quoted));
  }
  return await Promise.all([...names].map((name) => connections.secretsOf(provider.name, name)));
}

function unquoted(json: string): string {
  try {
    return (JSON.parse(json) as string).toWellFormed();
  } catch {
    return '';
  }
}
