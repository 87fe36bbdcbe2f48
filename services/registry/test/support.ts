/** A registry on a real store and a real folder, and packages to publish there. */
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLog } from '@penstock/telemetry/log';
import { loadTiers } from '@penstock/config';
import { packFolder, type PublishAnswer, type PublishRequest, type RegistryCaller } from '@penstock/extension';
import { openFolderStore, type ObjectStore } from '@penstock/object-store';
import { openSqliteStore, type DocumentStore, runCollections } from '@penstock/store';
import { registryCollections } from '../src/index.ts';
import { Registry, type RegistryOptions } from '../src/operations/registry.ts';

export const service: RegistryCaller = { tenant: 'service', tier: 'enterprise', isAdmin: false };
export const nobody: RegistryCaller = { tenant: null, tier: 'free', isAdmin: false };
export const user = (id: string, tier = 'pro'): RegistryCaller => ({ tenant: `user/${id}`, tier, isAdmin: false });

export interface World {
  readonly store: DocumentStore;
  readonly objects: ObjectStore;
  readonly folder: string;
  /** Moves the clock. */
  now: number;
  /** Another registry on the same store. */
  registry(options?: Partial<RegistryOptions>): Registry;
  close(): Promise<void>;
}

export async function makeWorld(): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-registry-'));
  const store = await openSqliteStore({
    path: join(folder, 'store.db'),
    collections: [...registryCollections, ...runCollections],
    synchronous: 'normal',
  });
  const objects = await openFolderStore(join(folder, 'objects'));
  const world: World = {
    store,
    objects,
    folder,
    now: Date.now(),
    registry: (options = {}) =>
      new Registry({
        store,
        objects,
        tiers: loadTiers(),
        policy: 'any',
        log: silentLog,
        now: () => world.now,
        ...options,
      }),
    async close() {
      await store.close();
      await rm(folder, { recursive: true });
    },
  };
  return world;
}

export interface SomePackage {
  readonly id: string;
  readonly version?: string;
  readonly description?: string;
  readonly readme?: string;
  readonly changelog?: string;
  /** `uses` of its stages. */
  readonly uses?: readonly string[];
  /** Makes other bytes of it. */
  readonly note?: string;
  /** Behind the rest of its manifest. */
  readonly comment?: string;
}

export async function packageOf({
  id,
  version = '1.0.0',
  description = 'Something',
  readme,
  changelog,
  uses,
  note,
  comment = '',
}: SomePackage): Promise<Buffer> {
  const body =
    uses === undefined
      ? ['run: echo something']
      : ['stages:', ...uses.flatMap((each, index) => [`  s${index}:`, `    uses: ${each}`])];
  const manifest = [`id: ${id}`, `version: ${version}`, `description: ${description}`, ...body, comment].join('\n');
  const folder = await mkdtemp(join(tmpdir(), 'penstock-package-'));
  try {
    const files = { 'extension.yaml': manifest, 'README.md': readme, 'CHANGELOG.md': changelog, 'note.txt': note };
    for (const [name, text] of Object.entries(files)) if (text !== undefined) await writeFile(join(folder, name), text);
    return Buffer.from((await packFolder(folder)).bytes);
  } finally {
    await rm(folder, { recursive: true });
  }
}

export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export async function upload(registry: Registry, caller: RegistryCaller, bytes: Buffer): Promise<string> {
  const hash = hashOf(bytes);
  await registry.upload(caller, hash, pieces(bytes));
  return hash;
}

/** Uploads and publishes. */
export async function publish(
  registry: Registry,
  caller: RegistryCaller,
  some: SomePackage,
  options: Partial<PublishRequest> = {},
): Promise<PublishAnswer> {
  const packageHash = await upload(registry, caller, await packageOf(some));
  return await registry.publish({ caller, packageHash, ...options });
}

export async function* pieces(bytes: Buffer): AsyncGenerator<Uint8Array, void> {
  for (let at = 0; at < bytes.length; at += 60_000) yield bytes.subarray(at, at + 60_000);
}
