/**
 * Who may do what on the broker: the data that a broker's configuration is generated from. Allow-lists only.
 *
 * PERMISSION-0 The streams, the scheduler and the set-up live in one account, `PENSTOCK`. Every other service, and every runner by
 *     itself, has an account of its own, joined to it by exports and imports. Permissions in one shared account would not
 *     hold: a client names the subject that an answer goes to, and the broker checks only the subject of the question. A
 *     runner that may read its own lease could have that answer delivered as another runner's job, or into a journal.
 *     Between accounts the broker replaces the reply subject by one of its own, so an answer reaches who asked, or nobody.
 * PERMISSION-1 An account holds exactly what its user may do: `asks`, `hears` and `answers` are both its permissions and its imports
 *     and exports, and each export names the accounts that it is for.
 * PERMISSION-3 What a tenant's own runner stores is looked at first (`subjects.looked`): it stores nothing by itself.
 * PERMISSION-2 A runner's own name stands in each subject that it writes, and in each that it alone reads (P10).
 */
import assert from 'node:assert';
import { DELIVERY_CONSUMER } from '../jetstream/delivery-log.ts';
import { FLEETING_STREAMS } from '../jetstream/stream-copies.ts';
import { bucketStream } from '../jetstream/streams.ts';
import { isFleetRunner } from '../contract/fleet.ts';
import { buckets, streams, subjects } from '../contract/subjects.ts';

interface BrokerUser {
  readonly name: string;
  /** For `connectBus`: where its answers arrive, and nobody else's. */
  readonly inboxPrefix: string;
  /** How it may connect; absent: however the server listens. */
  readonly transport?: 'STANDARD' | 'WEBSOCKET' | undefined;
}

/** A user of the account that holds the streams: plain allow-lists. */
export interface CoreUser extends BrokerUser {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** Something that a peer may ask, of the core account or of another peer. */
interface Ask {
  readonly subject: string;
  /** `many`: an answer may have several messages. `long`: for longer than any other request waits. */
  readonly answer: 'one' | 'many' | 'long';
  /** The name of the peer that answers; absent: the core account. */
  readonly of?: string | undefined;
  /** What it is called in the account that answers; absent: as here. */
  readonly there?: string | undefined;
}

/** A user with an account of its own. */
export interface PeerUser extends BrokerUser {
  readonly account: string;
  /** Requests, and stored publishes. */
  readonly asks: readonly Ask[];
  /** Published in the core account. */
  readonly hears: readonly string[];
  /** Requests of the core account that it answers. */
  readonly answers: readonly string[];
  /** Requests of other peers that it answers; who may ask is in their `asks`. */
  readonly serves: readonly string[];
  /** What its own processes tell each other; it does not leave their account. */
  readonly tells: readonly string[];
}

export interface BrokerPermissions {
  readonly coreAccount: string;
  readonly core: readonly CoreUser[];
  readonly peers: readonly PeerUser[];
  /** The core account has no bounds but the server's own. */
  readonly isOpen?: boolean | undefined;
  /** Who may tell the server to read its configuration again. */
  readonly systemUser?: string | undefined;
}

/** In the folder of the server's store too. */
export const CORE_ACCOUNT = 'PENSTOCK';

/** The bucket in which the registry keeps packages, where it keeps them on the broker. */
const PACKAGES_STREAM = 'OBJ_packages';
const PACKAGES_SUBJECTS = '$O.packages.>';

/** Replies to requests that came from another account; the broker makes their names, which cannot be guessed. */
export const CROSSED_REPLIES = '_R_.>';

/** A wildcard where `subjects` takes the number of a partition. */
const ANY = '*' as unknown as number;

/** A token of a subject, of a user's and of a file's name. */
const RUNNER_ID = /^[A-Za-z0-9_-]{1,64}$/;

/** Throws a RangeError on a runner id that is no token, stands there twice, or has the form of a fleet's. */
export function brokerPermissions(runners: readonly string[]): BrokerPermissions {
  const ofFleet = runners.find(isFleetRunner);
  if (ofFleet !== undefined)
    throw new RangeError(`"${ofFleet}" has the form of a runner that a token has made: choose another id`);
  const bad = runners.find((runner, index) => !RUNNER_ID.test(runner) || runners.indexOf(runner) !== index);
  if (bad !== undefined)
    throw new RangeError(`"${bad}" is no runner id: 1 to 64 letters, digits, "_" and "-", each id once`);
  return {
    coreAccount: CORE_ACCOUNT,
    core: [setupUser(), backupUser(), schedulerUser()],
    peers: [gatewayUser(), authUser(), registryUser(), webhookIngestUser(), ...runners.map(runnerUser)],
  };
}

export interface FleetRunner {
  readonly id: string;
  /** Whose stages alone it is given; absent: everybody's. */
  readonly tenant?: string | undefined;
}

/**
 * For the broker of one machine: what is started there is one user, who may do everything in the core account, and each runner of
 * the fleet is a peer of it (P37).
 */
export function fleetPermissions(
  { user, systemUser }: { readonly user: string; readonly systemUser: string },
  runners: readonly FleetRunner[],
): BrokerPermissions {
  return {
    coreAccount: CORE_ACCOUNT,
    isOpen: true,
    systemUser,
    core: [{ name: user, inboxPrefix: '_INBOX', publish: ['>'], subscribe: ['>'], transport: 'STANDARD' }],
    peers: runners.map(fleetRunnerUser),
  };
}

export function runnerUserName(runner: string): string {
  return `runner_${runner}`;
}

/** What `connectBus` needs as `inboxPrefix` for a user of the generated configuration. */
export function inboxPrefixOf(user: string): string {
  return `_INBOX_${user}`;
}

/** Creates and adjusts streams and buckets (`ensureStreams`); used at set-up, by no service. Deletes nothing. */
function setupUser(): CoreUser {
  const verbs = ['INFO', 'CREATE', 'UPDATE'];
  return coreUser(
    'setup',
    allStreams().flatMap((stream) => verbs.map((verb) => api(`STREAM.${verb}.${stream}`))),
    [],
  );
}

/**
 * Copies streams and puts them back with the broker's own tools (`deploy/backup.sh`, `deploy/restore.sh`); used by no service. It reads
 * everything, and changes nothing that is there: a stream is restored only where there is none of its name.
 */
function backupUser(): CoreUser {
  const kept = allStreams().filter((stream) => !FLEETING_STREAMS.has(stream));
  const verbs = ['INFO', 'SNAPSHOT', 'RESTORE'];
  return coreUser(
    'backup',
    [
      api('STREAM.NAMES'),
      ...kept.flatMap((stream) => verbs.map((verb) => api(`STREAM.${verb}.${stream}`))),
      // Of what the broker sends and is sent, each part is acknowledged.
      ...kept.flatMap((stream) => [`$JS.SNAPSHOT.ACK.${stream}.>`, `$JS.SNAPSHOT.RESTORE.${stream}.>`]),
    ],
    [],
  );
}

function allStreams(): readonly string[] {
  return [
    streams.journal,
    streams.logs,
    streams.deliveries,
    ...Object.values(buckets).map(bucketStream),
    PACKAGES_STREAM,
  ];
}

function schedulerUser(): CoreUser {
  return coreUser(
    'scheduler',
    [
      subjects.journal(ANY),
      // `last` and `purgeTo` read from the leader.
      api(`STREAM.MSG.GET.${streams.journal}`),
      api(`DIRECT.GET.${streams.journal}`),
      api(`STREAM.PURGE.${streams.journal}`),
      api(`STREAM.MSG.GET.${streams.logs}`),
      api(`DIRECT.GET.${streams.logs}`),
      // Of runs that are deleted (P34).
      api(`STREAM.PURGE.${streams.logs}`),
      // With these `ensureStreams` finds all well; where it does not, it is refused.
      ...[streams.journal, streams.logs, streams.deliveries, bucketStream(buckets.revocations)].map((stream) =>
        api(`STREAM.INFO.${stream}`),
      ),
      ...leaseKeys(buckets.members, '*'),
      ...[buckets.members, buckets.runners, buckets.controls].flatMap(watchOf),
      subjects.events('*'),
      subjects.opened('*'),
      subjects.released('*'),
      subjects.hooksWaiting,
      subjects.demand('*'),
      subjects.release('*'),
      subjects.job('*'),
      subjects.stop('*'),
      // Marks, at the end of a lost attempt's log (P21).
      subjects.log('*', '*'),
      CROSSED_REPLIES,
    ],
    [
      subjects.ownerAll(ANY),
      subjects.pull('*', '*'),
      subjects.released('*'),
      subjects.demand('*'),
      subjects.committing,
      subjects.status('*'),
    ],
  );
}

function gatewayUser(): PeerUser {
  return peerUser('gateway', 'GATEWAY', {
    asks: [
      ...ownersAsked(),
      ...(['cancel', 'approve', 'decide', 'delete', 'waits', 'schedules', 'pause'] as const).map((verb) =>
        many(subjects.owner(ANY, verb)),
      ),
      // Whether a chunk is gone for good its leader alone can say, if it is sure to be the leader.
      ...['STREAM.MSG.GET', 'STREAM.INFO'].map((verb) => one(api(`${verb}.${streams.logs}`))),
      many(api(`DIRECT.GET.${streams.logs}`)),
      ...watchOf(buckets.revocations).map(one),
      // What an administrator pauses.
      one(`$KV.${buckets.controls}.>`),
      many(api(`DIRECT.GET.${bucketStream(buckets.controls)}`)),
      many(subjects.status('*')),
      { ...one(anyVerb('auth')), of: 'auth' },
      { ...many(anyVerb('webhook-ingest')), of: 'webhook-ingest' },
      // Not all that begins so: behind `artifacts` and `upload` stands the runner that speaks (PERMISSION-2).
      ...['*', 'artifact.*', 'cache.*', 'log.*'].map((verbs) => ({
        ...many(subjects.service('registry', verbs)),
        of: 'registry',
      })),
    ],
    // What the watch's consumer delivers comes to its inbox as plain messages.
    hears: [subjects.events('*'), subjects.opened('*'), subjects.liveLogOfRun('*'), `${inboxPrefixOf('gateway')}.>`],
    tells: [subjects.alive('gateway')],
  });
}

/** Says that tokens are dead, and hears nothing but questions; those about secrets it looks up in a runner's lease. */
function authUser(): PeerUser {
  return peerUser('auth', 'AUTH', {
    asks: [
      one(`$KV.${buckets.revocations}.>`),
      // The lease of a runner that presents a slip, as the leader knows it (P31).
      ...['STREAM.MSG.GET', 'STREAM.INFO'].map((verb) => one(api(`${verb}.${bucketStream(buckets.runners)}`))),
    ],
    serves: [anyVerb('auth'), subjects.slip('*'), subjects.cloneSecret],
    tells: [subjects.alive('auth')],
  });
}

function registryUser(): PeerUser {
  return peerUser('registry', 'REGISTRY', {
    asks: [
      ...(['token', 'token.used', 'session'] as const).map((verb) => ({
        ...one(subjects.service('auth', verb)),
        of: 'auth',
      })),
      ...watchOf(buckets.revocations).map(one),
      many(subjects.owner(ANY, 'attempt')),
      // Whether a run that has no document is with its owner still.
      many(subjects.owner(ANY, 'open')),
      one(PACKAGES_SUBJECTS),
      ...['STREAM.INFO', 'STREAM.MSG.GET', 'STREAM.PURGE', 'DIRECT.GET'].map((verb) =>
        one(api(`${verb}.${PACKAGES_STREAM}`)),
      ),
      one(api(`DIRECT.GET.${PACKAGES_STREAM}.${PACKAGES_SUBJECTS}`)),
      // Logs of ended runs, which it archives (P34).
      ...['STREAM.INFO', 'STREAM.MSG.GET', 'STREAM.PURGE'].map((verb) => one(api(`${verb}.${streams.logs}`))),
      many(api(`DIRECT.GET.${streams.logs}`)),
    ],
    hears: [`${inboxPrefixOf('registry')}.>`],
    serves: [anyVerb('registry')],
    tells: [subjects.alive('registry'), subjects.registryChanged],
  });
}

function webhookIngestUser(): PeerUser {
  const { deliveries } = streams;
  const consumer = `${deliveries}.${DELIVERY_CONSUMER}`;
  return peerUser('webhook-ingest', 'WEBHOOK-INGEST', {
    asks: [
      ...ownersAsked(),
      many(subjects.owner(ANY, 'schedule')),
      { ...one(subjects.service('auth', 'user')), of: 'auth' },
      // What opens a connected repository that has a secret of its own (P31).
      { ...one(subjects.cloneSecret), of: 'auth' },
      { ...many(subjects.service('registry', 'resolve')), of: 'registry' },
      one(subjects.delivery('*', '*')),
      one(api(`STREAM.INFO.${deliveries}`)),
      one(api(`STREAM.MSG.GET.${deliveries}`)),
      many(api(`DIRECT.GET.${deliveries}`)),
      one(api(`STREAM.PURGE.${deliveries}`)),
      one(api(`STREAM.MSG.DELETE.${deliveries}`)),
      ...['CREATE', 'INFO'].map((verb) => one(api(`CONSUMER.${verb}.${consumer}`))),
      { subject: api(`CONSUMER.MSG.NEXT.${consumer}`), answer: 'long' },
      one(`$JS.ACK.${consumer}.>`),
    ],
    hears: [subjects.events('*'), subjects.opened('*'), subjects.hooksWaiting],
    serves: [anyVerb('webhook-ingest')],
    tells: [subjects.alive('webhook-ingest'), subjects.decided, subjects.connections],
  });
}

/** By whoever begins runs, and tells what became of them. */
function ownersAsked(): readonly Ask[] {
  return [
    ...(['create', 'get', 'watch'] as const).map((verb) => many(subjects.owner(ANY, verb))),
    one(subjects.committing),
  ];
}

/** Verbs of a service may have several parts. */
function anyVerb(service: 'auth' | 'registry' | 'webhook-ingest'): string {
  return subjects.service(service, '>');
}

function runnerUser(runner: string): PeerUser {
  const user = runnerUserName(runner);
  return peerUser(user, `RUNNER_${runner}`, {
    asks: [
      ...asksOfRunner(runner),
      ...watchOf(buckets.members).map(one),
      ...asksOfRegistry(runner).map((ask) => ({ ...ask, of: 'registry' })),
      { ...one(subjects.slip(runner)), of: 'auth' },
    ],
    // What the watch's consumer delivers comes to its inbox as plain messages.
    hears: [subjects.demand('*'), subjects.release(runner), `${inboxPrefixOf(user)}.>`],
    answers: [subjects.job(runner), subjects.stop(runner)],
  });
}

/**
 * It makes no consumer: whoever may, names where that delivers, and so could have memberships delivered as anything. It hears the
 * renewals of memberships as they are published instead (`hearMembers`).
 */
function fleetRunnerUser({ id: runner, tenant }: FleetRunner): PeerUser {
  const asks = [...asksOfRunner(runner), ...asksOfRegistry(runner), one(subjects.slip(runner))];
  const stores = storedByRunner(runner);
  const demand = tenant === undefined ? subjects.demand('*') : subjects.demandOfTenant('*', tenant);
  const peer = peerUser(runnerUserName(runner), `RUNNER_${runner}`, {
    asks:
      tenant === undefined
        ? asks
        : asks.map((ask) => (stores.includes(ask.subject) ? { ...ask, there: subjects.looked(ask.subject) } : ask)),
    hears: [demand, subjects.release(runner), `$KV.${buckets.members}.*`],
    answers: [subjects.job(runner), subjects.stop(runner)],
  });
  return { ...peer, transport: 'WEBSOCKET' };
}

function asksOfRunner(runner: string): readonly Ask[] {
  return [
    one(subjects.pull('*', runner)),
    one(subjects.result(ANY, runner)),
    many(subjects.owner(ANY, 'open')),
    one(subjects.log('*', runner)),
    // The last chunk of its own of a run; a batch names its subjects in the body and so could read every log.
    one(api(`DIRECT.GET.${streams.logs}.${subjects.log('*', runner)}`)),
    ...leaseKeys(buckets.runners, `${runner}.*`).map(one),
  ];
}

/** Of what it asks, all that has something stored at the broker. */
function storedByRunner(runner: string): readonly string[] {
  return [subjects.log('*', runner), `$KV.${buckets.runners}.${runner}.*`];
}

function asksOfRegistry(runner: string): readonly Ask[] {
  return [subjects.service('registry', 'package'), subjects.artifacts(runner, '*'), subjects.upload(runner, '*')].map(
    many,
  );
}

/** To write a lease and to read it back. */
function leaseKeys(bucket: string, key: string): readonly string[] {
  const subject = `$KV.${bucket}.${key}`;
  return [subject, api(`DIRECT.GET.${bucketStream(bucket)}.${subject}`)];
}

/** All that a bucket holds: as a replica tells it, and what is missing there as the leader does. */
function watchOf(bucket: string): readonly string[] {
  const stream = bucketStream(bucket);
  return [
    api(`STREAM.INFO.${stream}`),
    api(`STREAM.MSG.GET.${stream}`),
    api(`CONSUMER.CREATE.${stream}.*`),
    api(`CONSUMER.DELETE.${stream}.*`),
  ];
}

function api(operation: string): string {
  return `$JS.API.${operation}`;
}

const one = (subject: string): Ask => ({ subject, answer: 'one' });
const many = (subject: string): Ask => ({ subject, answer: 'many' });

function coreUser(name: string, publish: readonly string[], subscribe: readonly string[]): CoreUser {
  const inboxPrefix = inboxPrefixOf(name);
  return { name, inboxPrefix, publish, subscribe: [`${inboxPrefix}.>`, ...subscribe] };
}

function peerUser(
  name: string,
  account: string,
  rights: Partial<Pick<PeerUser, 'asks' | 'hears' | 'answers' | 'serves' | 'tells'>>,
): PeerUser {
  assert(account !== CORE_ACCOUNT);
  return {
    name,
    account,
    inboxPrefix: inboxPrefixOf(name),
    asks: [],
    hears: [],
    answers: [],
    serves: [],
    tells: [],
    ...rights,
  };
}
