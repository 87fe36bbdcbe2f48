export { startAuth } from './start.ts';
export { authCollections } from './model/collections.ts';
export type { ProviderSettings } from './providers/settings.ts';
export { runAuthService } from './service.ts';
