export { startAuth } from './start.ts';
export { checkAuthSettings } from './check-settings.ts';
export { authCollections } from './model/collections.ts';
export { providerSettings, type ProviderSettings } from './providers/settings.ts';
export { runAuthService } from './service.ts';
