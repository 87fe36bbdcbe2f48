/** What the command asks of a server's registry, and how its answers are read. */
import { createHash } from 'node:crypto';
import { refusalsByUses, type LockEntry } from '@penstock/extension';
import type { ResolvedExtension } from '@penstock/pipeline';
import { ServerRefused, type ServerError } from '../process/errors.ts';
import { printableLines, printableText } from '../output/printable-text.ts';
import { ask, notOurs, refusal } from '../server/graphql.ts';
import { fieldOf, parseJson } from '../server/json.ts';
import { readBody, refused, unreachable, type ServerClient } from '../server/http-client.ts';

/** 50 MiB pass a slow line within this time. */
const TRANSFER_MS_MAX = 300_000;

/** The registry knows no extension for some `uses`; why, by each of them. */
export class NotResolved extends ServerRefused {
  readonly refusals: ReadonlyMap<string, string>;

  constructor(message: string, refusals: ReadonlyMap<string, string>) {
    super(message);
    this.refusals = refusals;
  }
}

/** Asks the server's registry what these `uses` stand for. Throws NotResolved, and ServerError. */
export async function resolveExtensions(
  client: ServerClient,
  uses: readonly string[],
  lock: readonly LockEntry[],
): Promise<ResolvedExtension[]> {
  const query =
    'query ($uses: [String!], $lock: [LockEntryInput!]) { resolveExtensions(uses: $uses, lock: $lock) { uses id version hash manifest } }';
  const { data, errors } = await ask(client, query, {
    uses,
    lock: lock.map(({ uses: text, id, version, hash }) => ({ uses: text, id, version, hash })),
  });
  const [error] = errors;
  if (error !== undefined) {
    const refusals = refusalsOf(fieldOf(error.extensions, 'unresolved'));
    throw refusals.size > 0 ? new NotResolved(printableLines(error.message), refusals) : refusal(client, error);
  }
  const found = fieldOf(data, 'resolveExtensions');
  if (!Array.isArray(found)) return notOurs(client);
  return found.map((entry) => {
    const text = (name: string): string => textOf(entry, name) ?? notOurs(client);
    return {
      uses: text('uses'),
      id: text('id'),
      version: text('version'),
      hash: text('hash'),
      manifest: text('manifest'),
    };
  });
}

/** The bytes of a package; whoever takes them checks their hash. */
export async function* downloadPackage(client: ServerClient, hash: string): AsyncGenerator<Uint8Array> {
  try {
    const response = await client.fetch(`/registry/packages/${hash}`, {
      method: 'GET',
      signal: AbortSignal.timeout(TRANSFER_MS_MAX),
    });
    if (response.status !== 200) throw await refusedTransfer(client, response, 'does not give out the package');
    for await (const chunk of response.body ?? []) yield chunk;
  } catch (error) {
    throw unreachable(client.server, error);
  }
}

export async function uploadPackage(client: ServerClient, bytes: Uint8Array): Promise<string> {
  const hash = createHash('sha256').update(bytes).digest('hex');
  try {
    const init = {
      method: 'PUT',
      headers: { 'content-type': 'application/gzip' },
      body: Buffer.from(bytes),
      signal: AbortSignal.timeout(TRANSFER_MS_MAX),
    };
    const response = await client.fetch(`/registry/packages/${hash}`, init);
    if (response.status !== 200 && response.status !== 201)
      throw await refusedTransfer(client, response, 'does not take the package');
    await response.body?.cancel();
  } catch (error) {
    throw unreachable(client.server, error);
  }
  return hash;
}

export interface Published {
  readonly created: boolean;
  readonly isSigned: boolean;
}

export async function publishPackage(
  client: ServerClient,
  request: {
    readonly packageHash: string;
    readonly visibility?: string | undefined;
    readonly signature?: string | undefined;
  },
): Promise<Published> {
  const query =
    'mutation ($packageHash: String, $visibility: String, $signature: String) { publishExtension(packageHash: $packageHash, visibility: $visibility, signature: $signature) { created version { signed } } }';
  const answer = await one(client, query, { ...request }, 'publishExtension');
  return {
    created: fieldOf(answer, 'created') === true,
    isSigned: fieldOf(fieldOf(answer, 'version'), 'signed') === true,
  };
}

export async function yankVersion(client: ServerClient, id: string, version: string, yanked: boolean): Promise<void> {
  await one(
    client,
    'mutation ($id: String, $version: String, $yanked: Boolean) { yankExtensionVersion(id: $id, version: $version, yanked: $yanked) { yanked } }',
    { id, version, yanked },
    'yankExtensionVersion',
  );
}

export async function registerKey(client: ServerClient, publicKey: string): Promise<string> {
  return (
    textOf(
      await one(
        client,
        'mutation ($publicKey: String) { registerExtensionKey(publicKey: $publicKey) { id } }',
        { publicKey },
        'registerExtensionKey',
      ),
      'id',
    ) ?? notOurs(client)
  );
}

export interface FoundExtension {
  readonly id: string;
  readonly description: string;
  readonly downloadCount: string;
  readonly visibility: string;
  readonly latestVersion: string | null;
  readonly updatedAt: string;
}

const FOUND_FIELDS = 'id description downloadCount visibility latestVersion updatedAt';

export async function searchExtensions(
  client: ServerClient,
  filter: { readonly query?: string | undefined; readonly category?: string | undefined; readonly limit: number },
): Promise<FoundExtension[]> {
  const found = await one(
    client,
    `query ($query: String, $category: String, $limit: Int) { extensions(query: $query, category: $category, limit: $limit) { ${FOUND_FIELDS} } }`,
    { ...filter },
    'extensions',
  );
  return Array.isArray(found) ? found.map((entry) => foundOf(entry) ?? notOurs(client)) : notOurs(client);
}

export interface FoundVersion {
  readonly version: string;
  readonly packageHash: string;
  readonly sizeBytes: string;
  readonly yanked: boolean;
  readonly signed: boolean;
  readonly publishedAt: string;
}

/** Undefined: there is none that the caller may see. */
export async function showExtension(
  client: ServerClient,
  id: string,
): Promise<{ readonly extension: FoundExtension; readonly versions: readonly FoundVersion[] } | undefined> {
  const query = `query ($id: String) { extension(id: $id) { ${FOUND_FIELDS} } extensionVersions(extension_id: $id) { version packageHash sizeBytes yanked signed publishedAt } }`;
  const { data, errors } = await ask(client, query, { id });
  if (errors[0] !== undefined) throw refusal(client, errors[0]);
  const extension = foundOf(fieldOf(data, 'extension'));
  if (extension === undefined) return undefined;
  const versions = fieldOf(data, 'extensionVersions');
  return { extension, versions: Array.isArray(versions) ? versions.map(versionOf) : [] };
}

async function one(
  client: ServerClient,
  query: string,
  variables: Record<string, unknown>,
  field: string,
): Promise<unknown> {
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== undefined));
  const { data, errors } = await ask(client, query, given);
  if (errors[0] !== undefined) throw refusal(client, errors[0]);
  return fieldOf(data, field);
}

async function refusedTransfer(client: ServerClient, response: Response, what: string): Promise<ServerError> {
  if (response.status === 401) {
    await response.body?.cancel();
    return refused(client);
  }
  const message = fieldOf(parseJson(await readBody(response)), 'message');
  return new ServerRefused(
    `the server ${client.server.base} ${what}: ${typeof message === 'string' ? printableText(message) : `it answers ${response.status}`}`,
  );
}

function refusalsOf(unresolved: unknown): Map<string, string> {
  const entries = (Array.isArray(unresolved) ? unresolved : []).flatMap((entry) => {
    const [uses, message] = [textOf(entry, 'uses'), textOf(entry, 'message')];
    return uses === undefined || message === undefined ? [] : [{ uses, message: printableText(message) }];
  });
  return refusalsByUses(entries);
}

function foundOf(value: unknown): FoundExtension | undefined {
  const id = textOf(value, 'id');
  if (id === undefined) return undefined;
  const text = (name: string): string => textOf(value, name) ?? '';
  return {
    id,
    description: text('description'),
    downloadCount: text('downloadCount'),
    visibility: text('visibility'),
    latestVersion: textOf(value, 'latestVersion') ?? null,
    updatedAt: text('updatedAt'),
  };
}

function versionOf(value: unknown): FoundVersion {
  const text = (name: string): string => textOf(value, name) ?? '';
  return {
    version: text('version'),
    packageHash: text('packageHash'),
    sizeBytes: text('sizeBytes'),
    yanked: fieldOf(value, 'yanked') === true,
    signed: fieldOf(value, 'signed') === true,
    publishedAt: text('publishedAt'),
  };
}

function textOf(value: unknown, name: string): string | undefined {
  const found = fieldOf(value, name);
  return typeof found === 'string' ? found : undefined;
}
