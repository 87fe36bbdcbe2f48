export { startAuth, type AuthOptions, type RunningAuth } from './auth.ts';
export { authCollections } from './collections.ts';
export { providerSettings, type ProviderSettings } from './providers/settings.ts';
export { runAuthService } from './service.ts';
