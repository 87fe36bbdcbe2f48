/** What the registry keeps in the store. The bytes of packages are objects; everything else stands in these documents. */
import type { CollectionSpec } from '@penstock/store';

/**
 * An extension with all of its versions in one document: one compare-and-set makes a version appear, whole, or yanks one.
 * Its id is `<scope>|<look-alike form of the extension's id>` (`names.ts`), so that two names that look alike are one.
 */
export const extensionsSpec = {
  name: 'registry_extensions',
  fields: {
    /** '' for public ones, else the tenant that alone sees it. */
    scope: 'string',
    extensionId: 'string',
    tenant: 'string',
    /** Counts the changes, from 1. */
    generation: 'integer',
    /** Always 0: only the generation tells versions of this document apart. */
    revision: 'integer',
  },
  /** JSON of an `ExtensionRecord`. */
  parts: ['record'],
  indexes: [['scope']],
  version: ['generation', 'revision'],
} as const satisfies CollectionSpec;

/** The texts of a version. Written before the version appears; one that no extension names is a leftover. */
export const contentsSpec = {
  name: 'registry_contents',
  fields: {
    extensionKey: 'string',
    /** That of the extension. */
    scope: 'string',
    packageHash: 'string',
    /** Milliseconds since 1970. */
    createdAt: 'integer',
  },
  parts: ['manifest', 'readme', 'changelog'],
  indexes: [['packageHash'], ['packageHash', 'scope']],
} as const satisfies CollectionSpec;

/** Packages whose bytes are there and which may become a version; the id is `<tenant>|<hash>`. */
export const uploadsSpec = {
  name: 'registry_uploads',
  fields: {
    tenant: 'string',
    packageHash: 'string',
    objectKey: 'string',
    sizeBytes: 'integer',
    /** Milliseconds since 1970. */
    uploadedAt: 'integer',
    /** Tells uploads of one millisecond apart. */
    salt: 'integer',
  },
  parts: [],
  indexes: [['tenant'], ['uploadedAt']],
  version: ['uploadedAt', 'salt'],
} as const satisfies CollectionSpec;

/** Public keys that a tenant signs its packages with; the id is `<tenant>|<key's id>`. */
export const keysSpec = {
  name: 'registry_keys',
  fields: { tenant: 'string', keyId: 'string', name: 'string', publicKey: 'string', createdAt: 'integer' },
  parts: [],
  indexes: [['tenant']],
} as const satisfies CollectionSpec;

/** How often packages of an extension were downloaded; the id is the extension's. */
export const downloadsSpec = {
  name: 'registry_downloads',
  fields: { count: 'integer', generation: 'integer', revision: 'integer' },
  parts: [],
  indexes: [],
  version: ['generation', 'revision'],
} as const satisfies CollectionSpec;

/** One list of files that a stage has left, by `<run>|<hash of the list>`: who keeps how much. Which are to be seen stands in the runs. */
export const keptSpec = {
  name: 'kept_artifacts',
  fields: {
    runId: 'string',
    tenant: 'string',
    key: 'string',
    manifest: 'string',
    bytes: 'integer',
    /** 0 in documents of before. */
    weight: 'integer',
    /** Milliseconds since 1970. */
    storedAt: 'integer',
    /** When it was stored for the first time; 0 in documents of before. */
    firstAt: 'integer',
    expiresAt: 'integer',
    /** Tells what was stored in one millisecond apart. */
    salt: 'integer',
  },
  parts: [],
  indexes: [['key'], ['storedAt']],
  version: ['storedAt', 'salt'],
} as const satisfies CollectionSpec;

export const registryCollections: readonly CollectionSpec[] = [
  extensionsSpec,
  contentsSpec,
  uploadsSpec,
  keysSpec,
  downloadsSpec,
  keptSpec,
];
