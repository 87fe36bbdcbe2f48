/**
 * Fetches one file over http or https (or file:, for a mirror on a disk) into memory, with a bound on everything.
 *
 * DOWNLOAD-1. From the first byte sent to the headers of the last redirect: `respondMs` (so a black-holed host costs that and no more);
 *     between two pieces of the body: `idleMs`; for the whole: `totalMs`; size: `DOWNLOAD_BYTES_MAX`; `REDIRECTS_MAX` redirects.
 * DOWNLOAD-2. A failure is a `SourceFailed` with a short reason that names the host and never a password.
 * DOWNLOAD-3. HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY (either case) are honoured: plain proxies and CONNECT, with basic
 *     authentication from the proxy's address; SOCKS is not.
 */
import { readFileSync, statSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import { SourceFailed } from './errors.js';

/** The broker's archives are 7 MB. */
const DOWNLOAD_BYTES_MAX = 128 * 1024 * 1024;
const REDIRECTS_MAX = 5;

/** Where systems keep their trusted certificates; read because Node looks only at its own list, and pip and Go at these. */
const SYSTEM_BUNDLES = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/ssl/cert.pem',
];
const BUNDLE_VARIABLES = ['SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE', 'CURL_CA_BUNDLE', 'NODE_EXTRA_CA_CERTS'];

/**
 * @param limits `{ respondMs, idleMs, totalMs }`
 * @param options `env`; `accept` header; `certificate` an extra bundle's path; `proxy` instead of the environment's;
 *   `trusted(hostname)` true where the certificate is not checked (the checksum still is)
 * @returns `{ bytes, url, type }`, `url` being the address after redirects
 */
export async function download(address, limits, options) {
  if (!URL.canParse(address)) throw new SourceFailed(`"${withoutPassword(address)}" is no address`);
  let url = new URL(address);
  if (url.protocol === 'file:') return readFromDisk(url);
  const stop = new AbortController();
  const host = url.host;
  const give = (message) => stop.abort(new SourceFailed(message));
  const total = setTimeout(() => give(`${host} took longer than ${seconds(limits.totalMs)}`), limits.totalMs);
  const respond = setTimeout(
    () => give(`${host} did not answer within ${seconds(limits.respondMs)}`),
    limits.respondMs,
  );
  try {
    for (let redirects = 0; ; redirects += 1) {
      const response = await untilAborted(stop.signal, request(url, stop.signal, options));
      const { statusCode: status, headers } = response;
      if (status >= 300 && status < 400 && headers.location) {
        response.destroy();
        if (redirects === REDIRECTS_MAX) throw new SourceFailed(`${host} redirects in a circle`);
        const next = new URL(headers.location, url);
        if (url.protocol === 'https:' && next.protocol !== 'https:')
          throw new SourceFailed(`${host} redirects to an unprotected address`);
        url = next;
        continue;
      }
      clearTimeout(respond);
      if (status !== 200) {
        response.destroy();
        throw new SourceFailed(`${host} answered ${status}`);
      }
      const bytes = await untilAborted(stop.signal, readBody(response, host, limits.idleMs, give));
      return { bytes, url: url.href, type: headers['content-type'] ?? '' };
    }
  } catch (error) {
    if (error instanceof SourceFailed) throw error;
    throw new SourceFailed(`${host} cannot be reached (${error.code ?? error.message})`);
  } finally {
    clearTimeout(total);
    clearTimeout(respond);
    // Ends sockets still under way, such as one that is connecting to a host that never answers.
    stop.abort();
  }
}

function untilAborted(signal, promise) {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

async function readBody(response, host, idleMs, give) {
  const chunks = [];
  let length = 0;
  const onIdle = () => give(`${host} sent nothing for ${seconds(idleMs)}`);
  let idle = setTimeout(onIdle, idleMs);
  try {
    for await (const chunk of response) {
      clearTimeout(idle);
      idle = setTimeout(onIdle, idleMs);
      length += chunk.length;
      if (length > DOWNLOAD_BYTES_MAX) throw new SourceFailed(`${host} sends more than ${DOWNLOAD_BYTES_MAX} bytes`);
      chunks.push(chunk);
    }
  } finally {
    clearTimeout(idle);
  }
  const promised = response.headers['content-length'];
  if (promised !== undefined && Number(promised) !== length) throw new SourceFailed(`${host} broke off the transfer`);
  return Buffer.concat(chunks);
}

async function request(url, signal, options) {
  const headers = { accept: options.accept ?? '*/*', 'user-agent': 'penstock-bootstrap' };
  if (url.username) headers.authorization = basic(url);
  const proxy = proxyFor(url, options);
  const secure = url.protocol === 'https:';
  const tlsOptions = secure ? { ca: certificates(options), rejectUnauthorized: !options.trusted?.(url.hostname) } : {};
  if (proxy && !secure) {
    const authority = proxy.username ? { 'proxy-authorization': basic(proxy) } : {};
    const plain = new URL(url);
    plain.username = '';
    plain.password = '';
    return send(http, {
      agent: false,
      host: hostOf(proxy),
      port: proxy.port || 80,
      path: plain.href,
      headers: { ...headers, ...authority, host: url.host },
      signal,
    });
  }
  const target = {
    host: hostOf(url),
    port: url.port || (secure ? 443 : 80),
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host },
    signal,
    agent: false,
  };
  if (!proxy) return send(secure ? https : http, { ...target, ...tlsOptions, servername: serverName(url) });
  const socket = await tunnel(proxy, url, signal);
  const createConnection = () => tls.connect({ socket, servername: serverName(url), ...tlsOptions });
  // Node takes `createConnection` only where no agent is named.
  return send(https, { ...target, ...tlsOptions, agent: undefined, createConnection });
}

function send(module, options) {
  return new Promise((resolve, reject) => {
    module.get(options, resolve).on('error', reject);
  });
}

function tunnel(proxy, url, signal) {
  return new Promise((resolve, reject) => {
    const path = `${url.hostname}:${url.port || 443}`;
    const headers = { host: path, ...(proxy.username ? { 'proxy-authorization': basic(proxy) } : {}) };
    const secure = proxy.protocol === 'https:';
    const connect = (secure ? https : http).request({
      method: 'CONNECT',
      host: hostOf(proxy),
      port: proxy.port || (secure ? 443 : 80),
      path,
      headers,
      agent: false,
      signal,
    });
    connect.on('connect', (response, socket) => {
      if (response.statusCode === 200) resolve(socket);
      else {
        socket.destroy();
        reject(new SourceFailed(`the proxy ${proxy.host} answered ${response.statusCode}`));
      }
    });
    connect.on('error', reject).end();
  });
}

function proxyFor(url, { env, proxy }) {
  const read = (name) => env[name.toLowerCase()] || env[name] || '';
  const excluded = read('NO_PROXY')
    .split(/[\s,]+/)
    .filter(Boolean);
  const matches = (pattern) => {
    const [, name, port] = /^(.*?)(?::(\d+))?$/.exec(pattern.replace(/^\*?\./, ''));
    return (
      pattern === '*' ||
      ((url.hostname === name || url.hostname.endsWith(`.${name}`)) && (port === undefined || port === url.port))
    );
  };
  if (excluded.some(matches)) return undefined;
  const value = proxy || (url.protocol === 'https:' ? read('HTTPS_PROXY') : read('HTTP_PROXY')) || read('ALL_PROXY');
  if (!value) return undefined;
  const parsed = URL.canParse(value) && value.includes('://') ? new URL(value) : new URL(`http://${value}`);
  return /^https?:$/.test(parsed.protocol) ? parsed : undefined;
}

function certificates({ env, certificate }) {
  const files = [certificate, ...BUNDLE_VARIABLES.map((name) => env[name]), ...SYSTEM_BUNDLES].filter(Boolean);
  const extra = [...new Set(files)].flatMap((file) => {
    try {
      return [readFileSync(file, 'utf8')];
    } catch {
      return []; // A bundle that is not there decides nothing: the connection itself will say what it misses.
    }
  });
  return [...tls.rootCertificates, ...extra];
}

function readFromDisk(url) {
  try {
    let path = fileURLToPath(url);
    if (statSync(path).isDirectory())
      path = fileURLToPath(new URL('index.html', url.href.endsWith('/') ? url.href : `${url.href}/`));
    return { bytes: readFileSync(path), url: url.href, type: 'text/html' };
  } catch (error) {
    throw new SourceFailed(`${url.pathname} cannot be read (${error.code ?? error.message})`);
  }
}

export const withoutPassword = (text) => text.replace(/\/\/[^@/]*@/, '//');
const seconds = (ms) => `${ms / 1000} s`;
const hostOf = (url) => url.hostname.replace(/^\[|\]$/g, '');
const serverName = (url) => (/^[\d.]+$|:/.test(hostOf(url)) ? '' : hostOf(url));
const basic = (url) =>
  `Basic ${Buffer.from(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`).toString('base64')}`;
