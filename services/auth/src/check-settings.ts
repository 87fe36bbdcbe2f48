/** What can be known to be wrong with the settings of logins before anything has started. */
import { ConfigurationError, type ServerMode } from '@penstock/config';
import { chosenProvider } from './flows/provider-choice.ts';
import { providerSettings } from './providers/settings.ts';
import { namedAccounts } from './start.ts';

/** Throws a ConfigurationError that names the variable. */
export function checkAuthSettings(
  settings: Parameters<typeof providerSettings>[0] & Parameters<typeof namedAccounts>[0],
  mode: ServerMode,
): void {
  try {
    const { allowed } = namedAccounts(settings);
    chosenProvider({
      settings: providerSettings(settings),
      mode,
      baseUrl: () => '',
      organizations: allowed?.organizations,
    });
  } catch (error) {
    throw error instanceof RangeError ? new ConfigurationError([error.message]) : error;
  }
}
