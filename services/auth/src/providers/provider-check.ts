/** What is wrong with the settings of a provider, as far as it can be known without it: nothing here loads what speaks to one. */
import { isLoopback } from '@penstock/config';
import type { ProviderSettings } from './settings.ts';

export interface OidcSettings {
  readonly issuer: string;
}

/** Throws a RangeError that names the variable which is missing or cannot be. */
export function checkedOidc({ issuer }: ProviderSettings, organizations: readonly string[]): OidcSettings {
  if (issuer === undefined) throw new RangeError('GIT_HOST_ISSUER is missing, where GIT_HOST_PROVIDER is oidc');
  if (!isProtected(issuer))
    throw new RangeError(
      `GIT_HOST_ISSUER is ${issuer}: over plain http anybody on the way could say who somebody is; use https`,
    );
  if (organizations.length > 0)
    throw new RangeError(
      'SERVICE_ALLOWED_LOGINS names an org:…, which only GitHub and GitLab know; use emails, @domain or sub:<subject>',
    );
  return { issuer };
}

/** Whether nobody between here and there can change what is said: over https, or on this machine. */
export function isProtected(address: string): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/gu, '')));
}
