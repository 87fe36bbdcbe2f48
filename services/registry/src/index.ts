export { builtInExtensions } from './built-in-extensions.ts';
export { registryCollections } from './catalogue/collections.ts';
export { PACKAGES_BUCKET, runRegistryService } from './service.ts';
export { startRegistry } from './start.ts';
