export { extensionsSpec, registryCollections } from './collections.ts';
export { extensionKey } from './names.ts';
export type { ExtensionRecord, VersionRecord } from './records.ts';
export { Registry, type RegistryNews, type RegistryOptions } from './registry.ts';
export { PACKAGES_BUCKET, runRegistryService } from './service.ts';
export { SearchIndex } from './search-index.ts';
export {
  startRegistry,
  type BuiltInPackage,
  type RunningRegistry,
  type StartRegistryOptions,
} from './start-registry.ts';
