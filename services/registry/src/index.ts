export { registryCollections } from './catalogue/collections.ts';
export { PACKAGES_BUCKET, runRegistryService } from './service.ts';
export { startRegistry, type BuiltInPackage } from './start.ts';
