/** What can be known to be wrong with the settings of logins before anything has started. */
import { ConfigurationError } from '@penstock/config';
import { namedAccounts } from './model/named-accounts.ts';
import { checkedOidc } from './providers/provider-check.ts';
import { providerSettings } from './providers/settings.ts';

/** Throws a ConfigurationError that names the variable. */
export function checkAuthSettings(
  settings: Parameters<typeof providerSettings>[0] & Parameters<typeof namedAccounts>[0],
): void {
  try {
    const { allowed } = namedAccounts(settings);
    const provider = providerSettings(settings);
    if (provider.clientId !== undefined && provider.provider === 'oidc')
      checkedOidc(provider, allowed?.organizations ?? []);
  } catch (error) {
    throw error instanceof RangeError ? new ConfigurationError([error.message]) : error;
  }
}
