/** An issuer of OpenID Connect that moves, goes away and comes back while people log in. */
import { startFakeGitHost, type FakeGitHost } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { oidcProvider } from '../src/providers/oidc.ts';
import type { IdentityProvider } from '../src/providers/port.ts';
import { ALICE, CLIENT } from './support.ts';

const MINUTE_MS = 60_000;
const DOCUMENT = 'GET /.well-known/openid-configuration';

describe('an issuer', () => {
  let host: FakeGitHost;
  let now: number;
  let provider: IdentityProvider;

  beforeEach(async () => {
    now = 0;
    host = await startFakeGitHost({ ...CLIENT, account: ALICE });
    provider = oidcProvider({ issuer: host.url, ...CLIENT }, () => now);
  });
  afterEach(() => host.stop());

  /** The login that the person has, or why there is none. */
  async function login(): Promise<string> {
    const request = { redirectUri: `${host.url}/back`, state: 'state', nonce: 'nonce', verifier: 'v'.repeat(43) };
    const page = await fetch(await provider.authorizeUrl(request), { redirect: 'manual' });
    const location = page.headers.get('location');
    if (location === null) return `the page answers ${page.status}`;
    return await provider.profileOf(new URL(location), request).then(
      (profile) => profile.login,
      (error: Error) => error.name,
    );
  }

  const documents = (): number => host.requests.filter((request) => request === DOCUMENT).length;

  it('KEPT-1: whose endpoints and keys move is followed within ten minutes, and asked no more often', async () => {
    for (let logins = 0; logins < 3; logins++) expect(await login()).toBe('alice');
    expect(documents()).toBe(1);
    host.moved = '/v2';
    expect(await login()).toBe('the page answers 404');
    now += 10 * MINUTE_MS;
    for (let logins = 0; logins < 3; logins++) expect(await login()).toBe('alice');
    expect(documents()).toBe(2);
  });

  it('KEPT-1: with which a login has come to nothing is asked again by the next one, a minute later', async () => {
    expect(await login()).toBe('alice');
    host.idTokenFault = 'foreign key';
    expect(await login()).not.toBe('alice');
    expect(await login()).not.toBe('alice');
    expect(documents()).toBe(1);
    now += MINUTE_MS;
    host.idTokenFault = 'none';
    for (let logins = 0; logins < 2; logins++) expect(await login()).toBe('alice');
    expect(documents()).toBe(2);
  });

  it('KEPT-2: that does not answer counts as it did, and is asked again a minute later', async () => {
    const request = { redirectUri: `${host.url}/back`, state: 's', nonce: 'n', verifier: 'v'.repeat(43) };
    host.broken = true;
    await expect(provider.authorizeUrl(request)).rejects.toMatchObject({ tag: 'ProviderUnavailable' });
    host.broken = false;
    const before = await provider.authorizeUrl(request);
    now += 10 * MINUTE_MS;
    host.broken = true;
    for (let asked = 0; asked < 3; asked++) expect(await provider.authorizeUrl(request)).toBe(before);
    expect(documents()).toBe(3);
    [host.broken, host.moved] = [false, '/v2'];
    now += MINUTE_MS;
    expect(await provider.authorizeUrl(request)).toContain('/v2/authorize');
  });
});
