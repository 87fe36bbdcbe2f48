/**
 * Which clone addresses are allowed at all, judged by their text alone: no process, no name look-up, no connection. What a
 * name resolves to is judged when it is fetched (`connection.ts`).
 *
 * The text is taken apart here by one strict grammar, because git, curl, ssh and the URL standard each read a hostile
 * address in another way; what is not plainly one thing to all of them is refused.
 */
import { isIP, isIPv6 } from 'node:net';
import { GitError } from './errors.ts';
import { classOfAddress } from './ip-addresses.ts';

export interface GitPolicy {
  /** `production`: https or ssh to `allowedHosts` only, never to an address that is not public. */
  readonly mode: 'development' | 'production';
  /** Exact names; without effect in development mode. */
  readonly allowedHosts: readonly string[];
}

export interface CloneAddress {
  readonly transport: 'https' | 'http' | 'ssh' | 'file';
  /** What git is given, and what people are shown: it holds no password. */
  readonly url: string;
  /** In lower case, an IPv6 address without its brackets; empty for `file`. */
  readonly host: string;
  /** 0 for `file`. */
  readonly port: number;
}

const URL_CHARS_MAX = 2_048;
const DEFAULT_PORTS = { https: 443, http: 80, ssh: 22, file: 0 } as const;
/** What is seen and is one character to everybody. Backslashes are slashes to some. */
const PLAIN_TEXT = /^[!-[\]-~]+$/u;
const USER = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$/u;
const NAME = /^(?=.{1,253}$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/u;
/** Without query and fragment, which name no repository; an encoded control character would come alive later. */
const PATH = /^\/(?:[A-Za-z0-9._~/+@:,=!$&'()*;-]|%(?![01][0-9A-Fa-f]|7[Ff])[0-9A-Fa-f]{2})+$/u;
const REF_CHARS_MAX = 1_024;
const COMMIT = /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/u;

/** @throws GitError `address_not_allowed` */
export function checkCloneUrl(url: string, policy: GitPolicy): CloneAddress {
  const address = parseCloneUrl(url);
  const { transport, host, port } = address;
  const refusesAddress = isIP(host) !== 0 && classOfAddress(host) === 'never';
  if (refusesAddress) throw refused('the address is link-local or names no single host');
  if (policy.mode === 'development') return address;
  if (transport !== 'https' && transport !== 'ssh')
    throw refused(`only https and ssh are allowed here, not ${transport}`);
  if (!policy.allowedHosts.some((allowed) => allowed.toLowerCase() === host))
    throw refused(`the host ${host} is not among those that may be cloned from`);
  if (port !== DEFAULT_PORTS[transport]) throw refused(`only the default port of ${transport} is allowed here`);
  if (isIP(host) !== 0 && classOfAddress(host) !== 'public') throw refused('the address is not a public one');
  return address;
}

/** A full commit id, in lower case. @throws GitError `not_found` for anything that cannot be one. */
export function checkCommit(commit: string): string {
  const lower = typeof commit === 'string' ? commit.toLowerCase() : '';
  if (!isCommit(lower)) throw new GitError('not_found', 'a commit is named by its 40 or 64 hexadecimal digits');
  return lower;
}

/** Whether it can be a commit's id, in lower case. */
export function isCommit(text: string): boolean {
  return COMMIT.test(text) && !/^0+$/u.test(text);
}

/** The full name of one ref, which stands in a refspec. @throws GitError `not_found` for anything that cannot be one. */
export function checkRef(ref: string): void {
  if (!/^refs\/[^\s:*^~?[\\\p{Cc}]+$/u.test(ref) || ref.includes('..') || ref.length > REF_CHARS_MAX)
    throw new GitError('not_found', 'a ref is named in full, as in refs/heads/main');
}

function parseCloneUrl(url: string): CloneAddress {
  if (typeof url !== 'string' || url.length === 0 || url.length > URL_CHARS_MAX)
    throw refused(`an address has 1 to ${URL_CHARS_MAX} characters`);
  if (!PLAIN_TEXT.test(url))
    throw refused('the address holds a blank, a control character, a backslash or a character outside ASCII');
  if (url.startsWith('-')) throw refused('the address looks like an option');
  if (url.startsWith('/')) return fileAddress(url.replaceAll('%', '%25'));
  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/u.exec(url);
  if (scheme !== null) return schemeAddress((scheme[1] ?? '').toLowerCase(), scheme[2] ?? '');
  return scpAddress(url);
}

function fileAddress(path: string): CloneAddress {
  // Two slashes: a host's name to some.
  if (path.startsWith('//') || !PATH.test(path))
    throw refused('the path holds characters that are not allowed; write a file:// address, with them percent-encoded');
  return { transport: 'file', url: `file://${path}`, host: '', port: 0 };
}

function schemeAddress(scheme: string, rest: string): CloneAddress {
  if (scheme === 'file') return fileAddress(rest);
  if (scheme !== 'https' && scheme !== 'http' && scheme !== 'ssh')
    throw refused(`no repository is read by the scheme ${scheme}`);
  const slash = rest.indexOf('/');
  if (slash === -1) throw refused('the address has no path');
  const path = rest.slice(slash);
  if (!PATH.test(path)) throw refused('the path holds characters that are not allowed');
  const { user, host, bracketed, port } = parseAuthority(rest.slice(0, slash));
  if (user !== null && scheme !== 'ssh')
    throw refused('an address holds no credentials; they belong into the credentials file');
  const shownPort = port === null ? '' : `:${port}`;
  return {
    transport: scheme,
    host,
    port: port ?? DEFAULT_PORTS[scheme],
    url: `${scheme}://${user === null ? '' : `${user}@`}${bracketed}${shownPort}${path}`,
  };
}

/** `git@host:path`, as git hosts show it. */
function scpAddress(url: string): CloneAddress {
  const match = /^([^@:/]+)@([^@:/[\]]+):([^:].*)$/u.exec(url);
  const [, user = '', host = '', path = ''] = match ?? [];
  if (match === null || !USER.test(user)) throw refused('this is no address of a repository');
  // `host::…` asks git for a program; a path that begins with a dash is an option to the program there.
  if (path.startsWith('-') || !PATH.test(path.startsWith('/') ? path : `/${path}`))
    throw refused('the path holds characters that are not allowed');
  const { name } = parseHost(host);
  return { transport: 'ssh', url: `${user}@${name}:${path}`, host: name, port: DEFAULT_PORTS.ssh };
}

function parseAuthority(authority: string): {
  user: string | null;
  host: string;
  bracketed: string;
  port: number | null;
} {
  const match = /^(?:([^@]*)@)?(\[[^\]]*\]|[^@:[\]]*)(?::(\d{1,5}))?$/u.exec(authority);
  if (match === null) throw refused('the host is not plainly written');
  const [, user, hostText = '', portText] = match;
  if (user !== undefined && !USER.test(user))
    throw refused('an address holds no credentials; they belong into the credentials file');
  const port = portText === undefined ? null : Number(portText);
  if (port !== null && (port < 1 || port > 65_535 || String(port) !== portText)) throw refused('the port is none');
  const { name, bracketed } = parseHost(hostText);
  return { user: user ?? null, host: name, bracketed, port };
}

/** A name or a canonical address: not the decimal, octal and hexadecimal ones that some readers take for an IPv4 address. */
function parseHost(text: string): { name: string; bracketed: string } {
  if (text.startsWith('[')) {
    const inside = text.slice(1, -1).toLowerCase();
    if (!isIPv6(inside) || inside.includes('%')) throw refused('the host is not plainly written');
    return { name: inside, bracketed: `[${inside}]` };
  }
  const name = text.toLowerCase();
  if (isIP(name) === 4) return { name, bracketed: name };
  const lastLabel = name.slice(name.lastIndexOf('.') + 1);
  // Punycode is how a look-alike of an allowed name arrives; an allowed one is compared as it stands.
  if (!NAME.test(name) || /^(?:\d+|0x[0-9a-f]*)$/u.test(lastLabel)) throw refused('the host is not plainly written');
  return { name, bracketed: name };
}

function refused(why: string): GitError {
  return new GitError('address_not_allowed', `the address of the repository is not allowed: ${why}`);
}
