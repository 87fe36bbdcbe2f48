/**
 * What runners and gateways ask of the service that keeps artifacts: `subjects.artifacts(runner, verb)` and
 * `svc.registry.artifact.<verb>`. Runners hold no credentials of the object storage: their bytes move through these,
 * for an attempt that the run's owner says was granted to them.
 */
import type { AttemptRef } from '@penstock/bus';

/** Of bytes in one message: well below the broker's megabyte, also as base64. */
export const PART_BYTES = 512 * 1024;

/** Whose right a runner speaks by. */
export interface ByAttempt {
  readonly ref: AttemptRef;
  readonly partition: number;
}

/** `begin`: refused with QUOTA_EXCEEDED where so much more may not be kept. */
export interface BeginRequest extends ByAttempt {
  readonly files: number;
  readonly bytes: number;
}

/** `put`: a content of PART_BYTES at most; done when it is stored. */
export interface PutRequest extends ByAttempt {
  readonly sha256: string;
  /** Base64 from senders of releases before 0.7. */
  readonly data: Uint8Array | string;
}

/** `open`: a larger one; its parts go to `subjects.upload(runner, upload)`, in order. */
export interface OpenUploadRequest extends ByAttempt {
  readonly sha256: string;
  readonly sizeBytes: number;
  /** It can go straight to who keeps it. */
  readonly direct?: true | undefined;
}
/** `upload: null`: it is stored already, or goes by `direct`. */
export interface OpenUploadAnswer {
  readonly upload: string | null;
  readonly direct?: DirectContent | undefined;
}

/** Where one content goes, or comes from, on a connection of its own: with whom, and the key that both ends prove to have. */
export interface DirectContent {
  readonly host: string;
  readonly port: number;
  /** Names the key. */
  readonly ticket: string;
  /** In base64. */
  readonly key: string;
}

/** The last part is answered when the whole is stored. NOT_FOUND: the upload is over, and is to begin anew. */
export interface UploadPart {
  readonly offset: number;
  readonly data: Uint8Array | string;
}

/** `seal`: the list of what was stored, as the journal will name it. */
export interface SealRequest extends ByAttempt {
  readonly manifest: string;
}
export interface SealAnswer {
  readonly sha256: string;
  readonly files: number;
  readonly bytes: number;
}

/** `get`, of a runner: a part of a content of the attempt's own run, or of one whose stages that has adopted. */
export interface GetRequest extends ByAttempt {
  /** That other run. */
  readonly run?: string | undefined;
  readonly sha256: string;
  readonly offset: number;
  readonly raw?: true | undefined;
  readonly direct?: true | undefined;
}
/** `svc.registry.artifact.get`, of a gateway, which has seen who asks. */
export interface PartRequest {
  readonly runId: string;
  readonly sha256: string;
  readonly offset: number;
  readonly raw?: true | undefined;
  /** What is behind this part can come straight from who keeps it. */
  readonly direct?: true | undefined;
}
export interface PartAnswer {
  /** Base64 to those who do not ask for it `raw`. */
  readonly data: Uint8Array | string;
  readonly sizeBytes: number;
  /** From where what is behind this part is had. */
  readonly direct?: DirectContent | undefined;
}

/** `svc.registry.artifact.usage`: bytes that the key keeps. */
export interface UsageRequest {
  readonly key: string;
}
export interface UsageAnswer {
  readonly bytes: number;
}

/** `cache-find`: the exact key in one of the scopes that the attempt may read, else the newest that one of `restore` begins. */
export interface FindCacheRequest extends ByAttempt {
  readonly key: string;
  readonly restore: readonly string[];
}
export interface FoundCache {
  readonly id: string;
  /** Whose it is: `cacheScopeId`. */
  readonly scope: string;
  readonly key: string;
  readonly sha256: string;
  readonly sizeBytes: number;
}
export interface FindCacheAnswer {
  readonly found: FoundCache | null;
}

/** `cache-begin`: makes room. `wanted: false`: one with this key is there, or being stored by another. */
export interface BeginCacheRequest extends ByAttempt {
  readonly key: string;
  readonly sizeBytes: number;
}
export interface BeginCacheAnswer {
  readonly wanted: boolean;
}

/** `cache-get`: a part of an archive of a scope that the attempt may read. */
export interface GetCacheRequest extends GetRequest {
  readonly scope: string;
}

/** `cache-drop`: what was found is damaged, or not there; its keeper looks, and removes it where that is so. */
export interface DropCacheRequest extends ByAttempt {
  readonly id: string;
}

/** `svc.registry.cache.list`, of a gateway, which has seen who asks. */
export interface ListCachesRequest {
  readonly tenant: string;
  /** Only of this one. */
  readonly repository?: string | undefined;
}
interface CacheInfo {
  readonly id: string;
  readonly repository: string;
  readonly pipeline: string;
  readonly ref: string;
  readonly key: string;
  readonly sizeBytes: number;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
  readonly usedAt: number;
}
export interface ListCachesAnswer {
  readonly caches: readonly CacheInfo[];
}
/** `svc.registry.cache.delete`: of that tenant alone. */
export interface DeleteCacheRequest {
  readonly tenant: string;
  readonly id: string;
}
export interface DeleteCacheAnswer {
  readonly deleted: boolean;
}
