/** What other services ask of the registry (`svc.registry.<verb>`), and what the CLI reads of it. */
import type { ResolvedExtension } from '@penstock/pipeline';

/** On whose behalf something is asked. */
export interface RegistryCaller {
  /** Whose private extensions are seen, and to whom new ones belong; null: only the public ones, and nothing is written. */
  readonly tenant: string | null;
  readonly tier: string;
  readonly isAdmin: boolean;
}

export type Visibility = 'public' | 'private';

export interface ExtensionView {
  /** `build/node` */
  readonly id: string;
  /** `node` */
  readonly name: string;
  readonly description: string;
  readonly category: string;
  readonly visibility: Visibility;
  readonly downloadCount: number;
  /** ISO 8601 in UTC. */
  readonly createdAt: string;
  readonly updatedAt: string;
  /** By precedence, the yanked ones left out; null: all of them are yanked. */
  readonly latestVersion: string | null;
}

export interface VersionView {
  readonly extensionId: string;
  readonly version: string;
  /** SHA-256 of the package, lower-case hex. */
  readonly packageHash: string;
  readonly sizeBytes: number;
  readonly readme: string | null;
  readonly changelog: string | null;
  readonly yanked: boolean;
  readonly publishedAt: string;
  readonly signed: boolean;
}

/** `svc.registry.search` -> `ExtensionView[]`, best first. */
export interface SearchRequest {
  readonly caller: RegistryCaller;
  /** Absent or blank: all, the most downloaded first. */
  readonly query?: string | undefined;
  readonly category?: string | undefined;
  /** 1 to 100. */
  readonly limit: number;
}

/** `svc.registry.extension` -> `ExtensionView | null`. */
export interface ExtensionRequest {
  readonly caller: RegistryCaller;
  readonly id: string;
}

/** `svc.registry.versions` -> `VersionView[]`, the newest version first; none of an extension that the caller may not see. */
export interface VersionsRequest extends ExtensionRequest {
  /** 1 to 100. */
  readonly limit: number;
  /** Whether readme and changelog are wanted; else they are null. */
  readonly texts: boolean;
}

/** `svc.registry.publish` -> `PublishAnswer`. The package's bytes have been uploaded by the same tenant before. */
export interface PublishRequest {
  readonly caller: RegistryCaller;
  readonly packageHash: string;
  /** Absent: as the extension's earlier versions, and `public` for the first. */
  readonly visibility?: Visibility | undefined;
  /** Stands above the package's own. */
  readonly changelog?: string | undefined;
  /** See `signedText`; base64. */
  readonly signature?: string | undefined;
}

export interface PublishAnswer {
  readonly version: VersionView;
  /** False: the same bytes had been published as this version already. */
  readonly created: boolean;
}

/** `svc.registry.yank` -> `VersionView`. */
export interface YankRequest {
  readonly caller: RegistryCaller;
  readonly id: string;
  readonly version: string;
  readonly yanked: boolean;
}

/** One line of a lock. */
export interface LockEntry {
  readonly uses: string;
  readonly id: string;
  readonly version: string;
  readonly hash: string;
}

/** `svc.registry.resolve` -> `ResolveAnswer`; throws `BadUserInput` with `extensions.unresolved: Unresolved[]`. */
export interface ResolveRequest {
  readonly caller: RegistryCaller;
  /** As they stand in the file; what the extensions themselves use is added. */
  readonly uses: readonly string[];
  readonly lock?: readonly LockEntry[] | undefined;
}

export interface ResolveAnswer {
  readonly extensions: readonly ResolvedExtension[];
}

export interface Unresolved {
  /** One of those that were asked about; the message says which extension inside of it is meant. */
  readonly uses: string;
  readonly message: string;
  /** Ids or `id@version`s that may have been meant; the best first. */
  readonly candidates: readonly string[];
}

/** `svc.registry.package` -> `PackagePart`; `NOT_FOUND` for a hash that no version has. */
export interface PackageRequest {
  readonly hash: string;
  readonly offset: number;
}

export interface PackagePart {
  /** Base64 of at most `PACKAGE_PART_BYTES` bytes from the offset on. */
  readonly data: string;
  /** Of the whole package. */
  readonly size: number;
}

/** Below the broker's payload limit of 1 MiB with base64's third on top. */
export const PACKAGE_PART_BYTES = 512 * 1024;
export const PACKAGE_BYTES_MAX = 50 * 1024 * 1024;

/** `svc.registry.keys` (`{caller}`) -> `ExtensionKeyView[]`, `svc.registry.registerKey` -> `ExtensionKeyView`, `svc.registry.removeKey` (`{caller, id}`) -> `true`. */
export interface ExtensionKeyView {
  /** The first 16 hex digits of the SHA-256 of the raw public key. */
  readonly id: string;
  readonly name: string;
  /** Base64 of the 32 raw bytes. */
  readonly publicKey: string;
  readonly createdAt: string;
}

export interface RegisterKeyRequest {
  readonly caller: RegistryCaller;
  readonly name?: string | undefined;
  /** Ed25519: base64 of the 32 raw bytes, or PEM. */
  readonly publicKey: string;
}

/** `svc.registry.forgetTenant` -> `ForgetTenantAnswer`: an administrator deletes what this tenant alone has. */
export interface ForgetTenantRequest {
  readonly tenant: string;
}

/** How many this call has deleted: private extensions with all their versions, and packages that were uploaded and not published. */
export interface ForgetTenantAnswer {
  readonly extensions: number;
  readonly uploads: number;
}

/** What an Ed25519 signature of a package signs: these characters as UTF-8. The prefix keeps it from being taken for anything else. */
export function signedText(packageHash: string): string {
  return `penstock extension package sha256:${packageHash}`;
}
