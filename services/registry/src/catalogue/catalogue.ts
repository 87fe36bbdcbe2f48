/**
 * The extensions in the store: read by id or by a package's hash, changed by compare-and-set. It keeps nothing in memory, so
 * every answer has all that any registry has acknowledged.
 *
 * CATALOGUE-1 A record is replaced only over the generation that it was made from; of several changes at once one stands, and the
 *    others read again.
 * CATALOGUE-2 A record of another tenant's scope is never read for a caller: `visible` is the one place that decides.
 */
import { randomUUID } from 'node:crypto';
import { Unavailable } from '@penstock/errors';
import type { Collection, DocumentStore } from '@penstock/store';
import { contentsSpec, extensionsSpec } from './collections.ts';
import { earlierKey, extensionKey, presentKey } from './names.ts';
import type { ExtensionRecord, VersionRecord, VersionTexts } from './records.ts';

export interface VersionContent extends VersionTexts {
  readonly manifest: string;
}

export interface VersionOfPackage {
  readonly record: ExtensionRecord;
  readonly version: VersionRecord;
}

const LIST_BATCH = 500;
/** Texts of one package in one scope: of its version, and of publications that came to nothing and are not swept yet. */
const SAME_HASH_MAX = 100;
/** Each is a lost race against another change of the same extension. */
const CHANGE_TRIES_MAX = 20;

export class Catalogue {
  readonly #extensions: Collection<typeof extensionsSpec>;
  readonly #contents: Collection<typeof contentsSpec>;

  /** The store has to be opened with `registryCollections` among its collections. */
  constructor(store: DocumentStore) {
    this.#extensions = store.collection(extensionsSpec);
    this.#contents = store.collection(contentsSpec);
  }

  async read(key: string): Promise<ExtensionRecord | null> {
    const document = await this.#extensions.get(key);
    return document === null ? null : parseRecord(document.record);
  }

  /** The extension of this id as the tenant sees it: a private one of its own stands above a public one. */
  async visible(extensionId: string, tenant: string | null): Promise<ExtensionRecord | null> {
    const scopes = tenant === null ? [''] : [tenant, ''];
    const keys = new Set(scopes.flatMap((scope) => [extensionKey(scope, extensionId), earlierKey(scope, extensionId)]));
    const records = (await this.#extensions.getMany([...keys])).map(({ record }) => parseRecord(record));
    const named = records.filter((record) => record.extensionId === extensionId && isVisible(record, tenant));
    return named.find(({ scope }) => scope !== '') ?? named[0] ?? null;
  }

  /** The versions with this package that the tenant sees. */
  async visibleOfPackage(hash: string, tenant: string | null): Promise<VersionOfPackage[]> {
    const scope = { in: ['', ...(tenant === null ? [] : [tenant])] };
    const contents = await this.#contents.list({
      where: { packageHash: hash, scope },
      limit: SAME_HASH_MAX,
      parts: [],
    });
    return (
      await this.#versionsOf(
        contents.map((content) => content.extensionKey),
        hash,
      )
    ).filter(({ record }) => isVisible(record, tenant));
  }

  /** Some version with this package, whoever may see it; null: there is none. */
  async anyOfPackage(hash: string): Promise<VersionOfPackage | null> {
    for (let after: { readonly id: string } | undefined; ;) {
      const contents = await this.#contents.list({
        where: { packageHash: hash },
        limit: SAME_HASH_MAX,
        parts: [],
        after,
      });
      const [found] = await this.#versionsOf(
        contents.map((content) => content.extensionKey),
        hash,
      );
      if (found !== undefined) return found;
      if (contents.length < SAME_HASH_MAX) return null;
      after = contents.at(-1);
    }
  }

  /**
   * Changes the record under a key: `change` is given what is there and answers what shall be there instead (its generation
   * is set here), or null to leave it. Called again where another change was faster. Answers the record that stands.
   */
  async change(
    key: string,
    change: (record: ExtensionRecord | null) => ExtensionRecord | null,
  ): Promise<ExtensionRecord | null> {
    for (let tries = 0; tries < CHANGE_TRIES_MAX; tries++) {
      const before = await this.read(key);
      const wanted = change(before);
      if (wanted === null) return before;
      const record = { ...wanted, key, generation: (before?.generation ?? 0) + 1 };
      const { scope, extensionId, tenant, generation } = record;
      const { stale } = await this.#extensions.replaceNewer([
        { id: key, scope, extensionId, tenant, generation, revision: 0, record: JSON.stringify(record) },
      ]);
      if (stale.length === 0) return record;
    }
    throw new Unavailable('Somebody else is changing this extension at the same time; try again.');
  }

  /** Deletes at most `limit` extensions that this tenant alone sees; their keys. What they name goes with the next sweep. */
  async removePrivate(tenant: string, limit: number): Promise<string[]> {
    const documents = await this.#extensions.list({ where: { scope: tenant }, limit, parts: [] });
    for (const { id } of documents) await this.#extensions.delete(id);
    return documents.map(({ id }) => id);
  }

  /**
   * Moves a record that an earlier release kept under another key to where it is looked for now. Where somebody has that key
   * the record stays where it is: its versions are found there, and new ones need another name. Answers what has moved.
   */
  async rekeyed(record: ExtensionRecord): Promise<ExtensionRecord | null> {
    const key = extensionKey(record.scope, record.extensionId);
    if (key === record.key) return null;
    const { scope, extensionId, tenant, generation } = record;
    const moved = { ...record, key };
    const inserted = await this.#extensions.insert({
      id: key,
      scope,
      extensionId,
      tenant,
      generation,
      revision: 0,
      record: JSON.stringify(moved),
    });
    const standing = inserted === 'duplicate' ? await this.read(key) : moved;
    if (standing?.extensionId !== extensionId || standing.tenant !== tenant) return null;
    // Also what a registry that was killed here, or another one at the same time, has moved already.
    await this.#extensions.delete(record.key);
    return standing;
  }

  async #versionsOf(extensionKeys: readonly string[], hash: string): Promise<VersionOfPackage[]> {
    // Contents name the key of their time.
    const keys = [...new Set(extensionKeys.flatMap((key) => [key, presentKey(key)]))];
    if (keys.length === 0) return [];
    const records = (await this.#extensions.getMany(keys)).map(({ record }) => parseRecord(record));
    return records.flatMap((record) =>
      record.versions.filter(({ packageHash }) => packageHash === hash).map((version) => ({ record, version })),
    );
  }

  /** All of them, private ones too: for the index and the sweeper. */
  async *all(): AsyncGenerator<ExtensionRecord, void> {
    for (let after: { readonly id: string } | undefined; ;) {
      const documents = await this.#extensions.list({ limit: LIST_BATCH, after });
      for (const { record } of documents) yield parseRecord(record);
      if (documents.length < LIST_BATCH) return;
      after = documents.at(-1);
    }
  }

  /** The id by which a version will name it. */
  async addContent(
    of: {
      readonly extensionKey: string;
      readonly scope: string;
      readonly packageHash: string;
      readonly createdAt: number;
    },
    content: VersionContent,
  ): Promise<string> {
    const id = randomUUID();
    await this.#contents.insert({ id, ...of, ...content });
    return id;
  }

  async manifestOf(version: VersionRecord): Promise<string> {
    const content = await this.#contents.get(version.contentId, { parts: ['manifest'] });
    if (content === null) throw new Error(`the manifest of ${version.packageHash} is missing from the store`);
    return String(content.manifest);
  }

  /** By content id. */
  async textsOf(versions: readonly VersionRecord[]): Promise<Map<string, VersionTexts>> {
    const contents = await this.#contents.getMany(
      versions.map(({ contentId }) => contentId),
      { parts: ['readme', 'changelog'] },
    );
    return new Map(
      contents.map(({ id, readme, changelog }) => [id, { readme: String(readme), changelog: String(changelog) }]),
    );
  }

  /** Ids and times of all contents, for the sweeper. */
  async *contents(): AsyncGenerator<{ readonly id: string; readonly createdAt: number }, void> {
    for (let after: { readonly id: string } | undefined; ;) {
      const documents = await this.#contents.list({ limit: LIST_BATCH, after, parts: [] });
      yield* documents;
      if (documents.length < LIST_BATCH) return;
      after = documents.at(-1);
    }
  }

  async removeContent(id: string): Promise<void> {
    await this.#contents.delete(id);
  }
}

function isVisible(record: ExtensionRecord, tenant: string | null): boolean {
  return record.scope === '' || record.scope === tenant;
}

function parseRecord(record: string | Uint8Array): ExtensionRecord {
  return JSON.parse(String(record)) as ExtensionRecord;
}
