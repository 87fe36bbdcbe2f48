/** An extension as it is kept, and as others see it. */
import semver from 'semver';
import type { ExtensionView, VersionView } from '@penstock/extension';

export interface ExtensionRecord {
  /** See `extensionKey`. */
  readonly key: string;
  /** '' for public ones, else the tenant that alone sees it. */
  readonly scope: string;
  readonly extensionId: string;
  /** Whose it is. */
  readonly tenant: string;
  /** Of the version published last. */
  readonly description: string;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Counts the changes of this record, from 1. */
  readonly generation: number;
  /** In the order of their publication; never empty. */
  readonly versions: readonly VersionRecord[];
}

export interface VersionRecord {
  readonly version: string;
  readonly packageHash: string;
  readonly sizeBytes: number;
  readonly objectKey: string;
  readonly contentId: string;
  readonly yanked: boolean;
  /** Milliseconds since 1970. */
  readonly publishedAt: number;
  /** With what it was signed when it was published; null: it was not. */
  readonly signature: { readonly keyId: string; readonly value: string } | null;
}

export interface VersionTexts {
  readonly readme: string;
  readonly changelog: string;
}

/** Whether it is newer news of its key: one that was removed and published again counts its generations anew. */
export function isNewer(record: RecordAge, known: RecordAge): boolean {
  return record.createdAt === known.createdAt
    ? record.generation > known.generation
    : record.createdAt > known.createdAt;
}

export type RecordAge = Pick<ExtensionRecord, 'createdAt' | 'generation'>;

/** Sorts by precedence, the highest first. */
export function byPrecedence(versions: readonly VersionRecord[]): VersionRecord[] {
  return versions.toSorted((a, b) => semver.rcompare(a.version, b.version) || b.publishedAt - a.publishedAt);
}

export function extensionView(record: ExtensionRecord, downloadCount: number): ExtensionView {
  const [category = '', name = ''] = record.extensionId.split('/');
  const newest = byPrecedence(record.versions).find(({ yanked }) => !yanked);
  return {
    id: record.extensionId,
    name,
    category,
    description: record.description,
    visibility: record.scope === '' ? 'public' : 'private',
    downloadCount,
    createdAt: new Date(record.createdAt).toISOString(),
    updatedAt: new Date(record.updatedAt).toISOString(),
    latestVersion: newest?.version ?? null,
  };
}

export function versionView(extensionId: string, version: VersionRecord, texts: VersionTexts | null): VersionView {
  return {
    extensionId,
    version: version.version,
    packageHash: version.packageHash,
    sizeBytes: version.sizeBytes,
    readme: texts?.readme || null,
    changelog: texts?.changelog || null,
    yanked: version.yanked,
    publishedAt: new Date(version.publishedAt).toISOString(),
    signed: version.signature !== null,
  };
}
