/** The registry's parts, for tests and benchmarks that run it without its process. */
export { extensionsSpec } from './catalogue/collections.ts';
export { extensionKey } from './catalogue/names.ts';
export type { ExtensionRecord } from './catalogue/records.ts';
export { Registry } from './operations/registry.ts';
export { LogArchiveService } from './archive/log-archive-service.ts';
