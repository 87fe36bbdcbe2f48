/**
 * A git host as an OAuth application sees it: GitHub and GitLab differ in their addresses and in what a user looks like,
 * not in the flows. Servers of one's own (GitHub Enterprise, a GitLab) are the same with other addresses.
 */
import { ProviderRefused, ProviderUnavailable } from '../model/errors.ts';
import { hashedVerifier } from './pkce.ts';
import type { Profile } from '../model/profile.ts';
import type { DevicePoll, DeviceStart, IdentityProvider, WebRequest } from './port.ts';
import { fieldOf, postForm, textOf } from './provider-http.ts';

export interface OauthHost {
  readonly kind: 'github' | 'gitlab';
  readonly baseUrl: string;
  readonly authorizePath: string;
  readonly tokenPath: string;
  readonly devicePath: string;
  readonly scope: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  profile(accessToken: string): Promise<Profile>;
}

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
/** Applies where a provider that says slow_down does not say by how much (RFC 8628, 3.5). */
const SLOWER_SECS = 10;

export function oauthHostProvider(host: OauthHost): IdentityProvider {
  const { clientId, scope } = host;
  const client = {
    client_id: clientId,
    ...(host.clientSecret === undefined ? {} : { client_secret: host.clientSecret }),
  };
  const at = (path: string): string => `${host.baseUrl}${path}`;

  const profileBy = async (answer: unknown): Promise<Profile> => {
    const accessToken = textOf(answer, 'access_token');
    if (accessToken === '') throw new ProviderUnavailable(`${host.baseUrl} gives neither a token nor an error`);
    const profile = await host.profile(accessToken);
    if (profile.subject === '' || profile.login === '')
      throw new ProviderUnavailable(`${host.baseUrl} does not say who the user is`);
    return profile;
  };

  return {
    kind: host.kind,
    name: `${host.kind} ${host.baseUrl}`,
    host: new URL(host.baseUrl).hostname,

    async authorizeUrl({ redirectUri, state, verifier }: WebRequest) {
      const url = new URL(at(host.authorizePath));
      url.search = new URLSearchParams({
        client_id: clientId,
        redirect_uri: redirectUri,
        response_type: 'code',
        scope,
        state,
        code_challenge: hashedVerifier(verifier),
        code_challenge_method: 'S256',
      }).toString();
      return url.href;
    },

    async profileOf(callback: URL, { redirectUri, verifier }: WebRequest) {
      const { body } = await postForm(at(host.tokenPath), {
        grant_type: 'authorization_code',
        ...client,
        code: callback.searchParams.get('code') ?? '',
        redirect_uri: redirectUri,
        code_verifier: verifier,
      });
      const error = textOf(body, 'error');
      if (error !== '') throw new ProviderRefused(error);
      return await profileBy(body);
    },

    device: {
      async begin(): Promise<DeviceStart | null> {
        const { status, body } = await postForm(at(host.devicePath), { client_id: clientId, scope });
        const [providerCode, userCode, verificationUri] = [
          textOf(body, 'device_code'),
          textOf(body, 'user_code'),
          textOf(body, 'verification_uri'),
        ];
        // Not switched on for this application, or a server too old to have it.
        if (status >= 400 || providerCode === '' || userCode === '' || !URL.canParse(verificationUri)) return null;
        const complete = textOf(body, 'verification_uri_complete');
        return {
          providerCode,
          userCode,
          verificationUri,
          ...(URL.canParse(complete) ? { verificationUriComplete: complete } : {}),
        };
      },

      async poll(providerCode: string): Promise<DevicePoll> {
        const { body } = await postForm(at(host.tokenPath), {
          ...client,
          device_code: providerCode,
          grant_type: DEVICE_GRANT,
        });
        const error = textOf(body, 'error');
        switch (error) {
          case '':
            return { kind: 'authorized', profile: await profileBy(body) };
          case 'authorization_pending':
            return { kind: 'pending' };
          case 'slow_down': {
            const interval = fieldOf(body, 'interval');
            return {
              kind: 'slow_down',
              intervalSecs: typeof interval === 'number' && interval > 0 ? Math.ceil(interval) : SLOWER_SECS,
            };
          }
          case 'access_denied':
            return { kind: 'denied' };
          case 'expired_token':
          case 'incorrect_device_code':
          case 'invalid_grant':
            // We have kept this code, so it was right once.
            return { kind: 'expired' };
          default:
            throw new ProviderUnavailable(`${host.baseUrl} answers a poll with '${error.slice(0, 100)}'`);
        }
      },
    },
  };
}
