/** What can be said of its settings without loading the service. */
export { checkAuthSettings } from './check-settings.ts';
export { providerSettings, type ProviderSettings } from './providers/settings.ts';
