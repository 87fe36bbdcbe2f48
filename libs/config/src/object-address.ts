/** What `SERVICE_OBJECTS_URL` can name: where large objects are kept. */
import type { Kind } from './kinds.ts';

export interface S3Address {
  readonly kind: 's3';
  readonly bucket: string;
  /** '' or with a `/` at its end. */
  readonly prefix: string;
  /** Undefined: Amazon's. */
  readonly endpoint: string | undefined;
  readonly region: string | undefined;
}

type ObjectAddress = { readonly kind: 'nats' } | { readonly kind: 'folder'; readonly folder: string } | S3Address;

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/;
const PREFIX = /^(?:[A-Za-z0-9_-][A-Za-z0-9_.-]*\/)*$/;
const PREFIX_LENGTH_MAX = 200;
/** Only Amazon's own have more than one; others take any. */
const REGION_ELSEWHERE = 'us-east-1';
const FORM = '`nats:`, a folder (`file:/path`), or `s3://bucket?endpoint=https://host&region=name`';

/** The text itself, where `parseObjectAddress` can read it. */
export function objectsUrl(): Kind<string> {
  return {
    form: FORM,
    parse(text) {
      const parsed = parseObjectAddress(text);
      return 'problem' in parsed ? parsed : { value: text };
    },
  };
}

export function parseObjectAddress(text: string): ObjectAddress | { readonly problem: string } {
  if (text === 'nats' || text === 'nats:') return { kind: 'nats' };
  if (text.startsWith('s3:')) return s3Address(text);
  const folder = text.startsWith('file:') ? text.slice('file:'.length).replace(/^\/\/(?=\/)/, '') : text;
  if (folder === '' || /^[a-z][a-z0-9+]*:\/\//i.test(folder)) return refused('names no folder');
  return { kind: 'folder', folder };
}

function s3Address(text: string): S3Address | { readonly problem: string } {
  if (!URL.canParse(text)) return refused('is no address');
  const { hostname, pathname, searchParams, username, password, hash, port } = new URL(text);
  // An address stands in logs.
  if (username !== '' || password !== '')
    return refused('holds credentials, which are given by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY');
  if (!BUCKET.test(hostname) || port !== '' || hash !== '') return refused('names no bucket');
  const prefix = pathname.replace(/^\//, '').replace(/(?<=[^/])$/, '/');
  if (!PREFIX.test(prefix) || prefix.length > PREFIX_LENGTH_MAX)
    return refused('has a path that no name of an object begins with');
  const unknown = [...searchParams.keys()].find((name) => name !== 'endpoint' && name !== 'region');
  if (unknown !== undefined) return refused(`has '${unknown.slice(0, 40)}' beside endpoint and region`);
  const endpoint = searchParams.get('endpoint') ?? undefined;
  if (endpoint !== undefined && !isEndpoint(endpoint))
    return refused('has an endpoint that is no http or https address');
  const region = searchParams.get('region') ?? (endpoint === undefined ? undefined : REGION_ELSEWHERE);
  return { kind: 's3', bucket: hostname, prefix, endpoint, region };
}

function isEndpoint(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && [username, password, search, hash].every((part) => part === '');
}

function refused(why: string): { readonly problem: string } {
  return { problem: `is to be ${FORM.replaceAll('`', '')}: it ${why}` };
}
