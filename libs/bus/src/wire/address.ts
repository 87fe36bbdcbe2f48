/** Addresses of a broker as `SERVICE_NATS_URL` gives them: user and password may stand in any of them, once. */

export interface BrokerAddress {
  readonly servers: readonly string[];
  readonly user?: string | undefined;
  readonly pass?: string | undefined;
}

export function brokerAddress(urls: readonly string[]): BrokerAddress {
  let credentials: { user: string; pass: string } | undefined;
  const servers = urls.map((text) => {
    const url = new URL(text);
    if (url.username !== '')
      credentials ??= { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) };
    url.username = '';
    url.password = '';
    return url.href.replace(/\/$/u, '');
  });
  return credentials === undefined ? { servers } : { servers, ...credentials };
}
