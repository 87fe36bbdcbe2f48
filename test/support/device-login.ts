/** Somebody logs in to a server of a test by the device flow, with the provider that is embedded in it. */
import { Browser } from '@penstock/testkit';

export interface Login {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly user: { readonly id: string };
}

export async function deviceLogin(url: string, name: string): Promise<Login> {
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(url + path, { method: 'POST', headers, body: JSON.stringify(body) });
    return (await response.json()) as Record<string, unknown>;
  };
  const flow = await post('/auth/device', {});
  const browser = new Browser();
  const who = await browser.submit(await browser.follow(String(flow['verification_uri'])), {
    user_code: String(flow['user_code']),
  });
  await browser.submit(await browser.submit(await browser.submit(who, { login: name }), { decision: 'allow' }), {
    decision: 'allow',
  });
  const login = await post('/auth/device/token', { device_code: flow['device_code'] });
  if (login['status'] !== 'authorized') throw new Error(`${name} is not logged in: ${JSON.stringify(login)}`);
  return login as unknown as Login;
}
