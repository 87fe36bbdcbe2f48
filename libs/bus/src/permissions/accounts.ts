/** The accounts of nats-server's configuration, made from the permissions. Pure. */
import { type BrokerPermissions, type CoreUser, CROSSED_REPLIES, type PeerUser } from './permissions.ts';

/**
 * What a user proves itself by: a password, as nats-server takes it (its bcrypt hash, or the text of one that is made anew at each
 * start), or an Ed25519 key, of which the broker has the public part.
 */
export type BrokerCredential = { readonly password: string } | { readonly publicKey: string };

/** In nats-server's notation every JSON string is a string, and nothing in it is expanded. */
const quoted = (value: string): string => JSON.stringify(value);
const list = (values: readonly string[]): string => `[${values.map(quoted).join(', ')}]`;

/** Streams and buckets that the set-up may make, and room for an object store. */
const STREAMS_MAX = 12;
/** A runner and a scheduler each hold a watch or two; those of a connection that broke linger for 10 s. */
const CONSUMERS_MAX = 500;
const CONSUMERS_PER_PEER = 20;
/** An answer that stays away longer is nobody's any more: the longest request waits 10 s, a batch 5 s for its next message. */
const ANSWER_THRESHOLD = '20s';
/** Of a pull for deliveries, which waits 20 s. */
const LONG_ANSWER_THRESHOLD = '30s';

/**
 * An answer of several messages ends by time, not by its first message, and the broker remembers it for so long; one of
 * one message is forgotten at once.
 */
const answerOf = {
  one: '',
  many: `, response_type: stream, response_threshold: ${quoted(ANSWER_THRESHOLD)}`,
  long: `, response_type: stream, response_threshold: ${quoted(LONG_ANSWER_THRESHOLD)}`,
} as const;

/**
 * JetStream answers a request to `$JS.API` for the account that it comes from, whatever is imported. So a peer's own names
 * for it are these; an account mapping leads there, and the client need not know. Direct gets are answered by the stream.
 */
const API = '$JS.API.';
const CROSSED_API = 'crossed.api.';
function crossed(subject: string): string | null {
  return subject.startsWith(API) && !subject.startsWith(`${API}DIRECT.GET.`)
    ? CROSSED_API + subject.slice(API.length)
    : null;
}

/** `accounts { … }`; the same for all servers of a cluster. `credentials`: by user. */
export function accountsConfiguration(
  permissions: BrokerPermissions,
  credentials: ReadonlyMap<string, BrokerCredential>,
): string {
  const credentialOf = (user: string): BrokerCredential => {
    const credential = credentials.get(user);
    if (credential === undefined) throw new RangeError(`no credentials for the user ${user}`);
    return credential;
  };
  return `# Nobody is in the account $G, and there is no user without credentials.
accounts {
${systemAccount(permissions, credentialOf)}${coreAccount(permissions, credentialOf)}
${permissions.peers.map((peer) => peerAccount(peer, permissions, credentialOf(peer.name))).join('\n')}
}
`;
}

function systemAccount({ systemUser }: BrokerPermissions, credentialOf: (user: string) => BrokerCredential): string {
  if (systemUser === undefined) return '';
  const rights = { publish: ['$SYS.REQ.SERVER.*.RELOAD'], subscribe: ['_INBOX.>'], transport: 'STANDARD' } as const;
  const user = { name: systemUser, inboxPrefix: '_INBOX', ...rights };
  return `  "$SYS" { users: [ ${userEntry(user, credentialOf(systemUser))} ] }\n`;
}

function coreAccount(
  { coreAccount: name, core, peers, isOpen }: BrokerPermissions,
  credentialOf: (user: string) => BrokerCredential,
): string {
  const imports = peers.flatMap(({ account, answers }) =>
    answers.map((subject) => `{ service: { account: ${quoted(account)}, subject: ${quoted(subject)} } }`),
  );
  return `  ${quoted(name)} {
    jetstream ${isOpen === true ? 'enabled' : `{ max_streams: ${STREAMS_MAX}, max_consumers: ${CONSUMERS_MAX + CONSUMERS_PER_PEER * peers.length} }`}
    users: [
${core.map((user) => `      ${userEntry(user, credentialOf(user.name))}`).join('\n')}
    ]
    exports: [
${coreExports(peers)
  .map((line) => `      ${line}`)
  .join('\n')}
    ]
    imports: [
${imports.map((line) => `      ${line}`).join('\n')}
    ]
  }`;
}

/** One export a subject, for the accounts that have it on their list and no others. */
function coreExports(peers: readonly PeerUser[]): string[] {
  const accountsOf = new Map<string, string[]>();
  const kindOf = new Map<string, string>();
  const add = (subject: string, kind: string, account: string): void => {
    kindOf.set(subject, kind);
    accountsOf.set(subject, [...(accountsOf.get(subject) ?? []), account]);
  };
  for (const { account, asks, hears } of peers) {
    for (const { subject, answer, of, there = subject } of asks)
      if (of === undefined) add(there, `service: ${quoted(there)}${answerOf[answer]}`, account);
    for (const subject of hears) add(subject, `stream: ${quoted(subject)}`, account);
  }
  return [...accountsOf].map(([subject, accounts]) => `{ ${kindOf.get(subject)}, accounts: ${list(accounts)} }`);
}

function peerAccount(
  peer: PeerUser,
  { coreAccount: core, peers }: BrokerPermissions,
  credential: BrokerCredential,
): string {
  const accountOf = (name: string | undefined): string => {
    const account = name === undefined ? core : peers.find((other) => other.name === name)?.account;
    if (account === undefined) throw new RangeError(`there is no service ${name ?? ''} to ask`);
    return account;
  };
  const from = (subject: string, account: string): string =>
    `{ account: ${quoted(account)}, subject: ${quoted(subject)} }`;
  const imports = [
    ...peer.asks.map(({ subject, of, there = subject }) => {
      const to = crossed(subject) ?? (there === subject ? null : subject);
      return `{ service: ${from(there, accountOf(of))}${to === null ? '' : `, to: ${quoted(to)}`} }`;
    }),
    ...peer.hears.map((subject) => `{ stream: ${from(subject, core)} }`),
  ];
  const exports = [
    ...peer.answers.map((subject) => `{ service: ${quoted(subject)}, accounts: ${list([core])} }`),
    ...peerExports(peer, peers),
  ];
  const mappings = peer.asks.flatMap(({ subject }) => {
    const to = crossed(subject);
    return to === null ? [] : [`${quoted(subject)}: ${quoted(withPlaceholders(to))}`];
  });
  const block = (name: string, open: string, close: string, lines: readonly string[]): string =>
    lines.length === 0
      ? ''
      : `    ${name}: ${open}\n${lines.map((line) => `      ${line}`).join('\n')}\n    ${close}\n`;
  return `  ${quoted(peer.account)} {
    users: [
      ${userEntry(asCoreUser(peer), credential)}
    ]
${block('mappings', '{', '}', mappings)}${block('exports', '[', ']', exports)}${block('imports', '[', ']', imports)}  }`;
}

/** What other peers may ask of this one, each subject for those that do. */
function peerExports({ name }: PeerUser, peers: readonly PeerUser[]): string[] {
  const asked = peers.flatMap(({ account, asks }) =>
    asks.filter(({ of }) => of === name).map(({ subject, answer }) => ({ account, subject, answer })),
  );
  return [...Map.groupBy(asked, ({ subject }) => subject)].map(
    ([subject, entries]) =>
      `{ service: ${quoted(subject)}${answerOf[entries[0]?.answer ?? 'one']}, accounts: ${list(entries.map(({ account }) => account))} }`,
  );
}

/** The same lists once more as the user's permissions: what is not allowed is refused at once, and reported. */
function asCoreUser(peer: PeerUser): CoreUser {
  const { name, inboxPrefix, transport, asks, hears, answers, serves, tells } = peer;
  const publish = [...asks.map(({ subject }) => crossed(subject) ?? subject), ...tells];
  if (answers.length + serves.length > 0) publish.push(CROSSED_REPLIES);
  // An empty list would allow everything. To its own inbox a user may write: nobody else is in its account.
  if (publish.length === 0) publish.push(`${inboxPrefix}.>`);
  return {
    name,
    inboxPrefix,
    transport,
    publish,
    subscribe: [...new Set([`${inboxPrefix}.>`, ...hears, ...answers, ...serves, ...tells])],
  };
}

function userEntry({ name, publish, subscribe, transport }: CoreUser, credential: BrokerCredential): string {
  const proof =
    'password' in credential
      ? `user: ${quoted(name)}, password: ${quoted(credential.password)}`
      : `nkey: ${quoted(credential.publicKey)}`;
  const by = transport === undefined ? '' : `, allowed_connection_types: ${list([transport])}`;
  const allowed = `publish: { allow: ${list(publish)} }, subscribe: { allow: ${list(subscribe)} }`;
  return `{ ${proof}, permissions: { ${allowed} }${by} }`;
}

/** `a.*.b.*` as the target of a mapping: `a.$1.b.$2`. */
function withPlaceholders(subject: string): string {
  let count = 0;
  return subject
    .split('.')
    .map((token) => (token === '*' ? `$${(count += 1)}` : token))
    .join('.');
}
