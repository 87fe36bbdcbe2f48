/**
 * What never reaches a log, replaced in the finished line, wherever in it it stands: a field, a message, a URL within an
 * error's cause. Two kinds: the forms that credentials have, and the secrets that this process was told.
 */

const REDACTED = '[redacted]';

/** Short ones would be found in innocent words; credentials that short protect nothing. */
const SECRET_LENGTH_MIN = 6;

/** Fields whose values are credentials; names as in HTTP, in JSON bodies and in our own options. */
const FIELDS = '(?:[a-z0-9_-]{0,40}(?:token|secret|password)|(?:proxy-)?authorization|(?:set-)?cookie|pass|api_?key)';

/** Repetitions are bounded, so that a hostile line costs no more than its length times the bound. */
const FORMS: readonly (readonly [form: RegExp, replacement: string])[] = [
  // A field of the line, at any depth, and of JSON that a string in it carries.
  [new RegExp(`"(${FIELDS})":"(?:[^"\\\\]|\\\\.)*"`, 'gi'), `"$1":"${REDACTED}"`],
  [
    new RegExp(`(\\\\{1,15}")(${FIELDS})\\1\\s*:\\s*\\1(?:(?!(?<!\\\\)\\1).)*(?<!\\\\)\\1`, 'gi'),
    `$1$2$1:$1${REDACTED}$1`,
  ],
  // In a query, a fragment or a form: token=..., access_token=..., client_secret=...
  [/((?:^|[?&#;\s"'])(?:[a-z_-]{0,40}token|ticket|client_secret|password|api_?key)=)[^&#;\s"'\\]+/gi, `$1${REDACTED}`],
  // What the identity provider sends back; the same words are innocent outside of a URL.
  [/([?&](?:code|state)=)[^&#;\s"'\\]+/gi, `$1${REDACTED}`],
  // scheme://user:password@host
  [/(\b[a-z][a-z0-9+.-]{0,20}:\/\/)[^\s/?#"'\\@]{1,512}@/gi, `$1${REDACTED}@`],
  // A header's value in words, as clients put it into messages.
  [/\b(bearer|basic)\s+[a-z0-9._~+/=-]{6,}/gi, `$1 ${REDACTED}`],
  [/\bsvc_[a-zA-Z0-9_-]{6,}/g, `svc_${REDACTED}`],
  [/\beyJ[a-zA-Z0-9_-]{1,4096}\.[a-zA-Z0-9_-]{1,4096}\.[a-zA-Z0-9_-]*/g, REDACTED],
];

export type Redact = (line: string) => string;

export function createRedact(secrets: readonly string[]): Redact {
  const known = [...new Set(secrets.filter((secret) => secret.length >= SECRET_LENGTH_MIN).flatMap(writtenForms))]
    // The longest first: one may begin with another.
    .sort((a, b) => b.length - a.length);
  return (line) => {
    let clean = line;
    for (const secret of known) if (clean.includes(secret)) clean = clean.replaceAll(secret, REDACTED);
    for (const [form, replacement] of FORMS) clean = clean.replace(form, replacement);
    return clean;
  };
}

/** As itself, as JSON carries it, and JSON within JSON; as within a URL, and as a header or a Kubernetes secret has it. */
function writtenForms(secret: string): string[] {
  const once = JSON.stringify(secret).slice(1, -1);
  const twice = JSON.stringify(once).slice(1, -1);
  return [
    secret,
    once,
    twice,
    JSON.stringify(twice).slice(1, -1),
    encodeURIComponent(secret),
    Buffer.from(secret).toString('base64'),
  ];
}
