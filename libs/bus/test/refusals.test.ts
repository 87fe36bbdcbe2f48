/** The generated configuration, held to what nobody may do with it. */
import { isDeepStrictEqual } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { acquireLease, buckets, ensureStreams, inboxPrefixOf, openLog, subjects, watchLeases } from '../src/index.ts';
import {
  chunk,
  chunksOf,
  GeneratedBroker,
  patient,
  soon,
  streamsOptions,
  subscribing,
  timely,
} from './generated-broker.ts';

let broker: GeneratedBroker;
const busOf: GeneratedBroker['busOf'] = (...of) => broker.busOf(...of);
const rawOf: GeneratedBroker['rawOf'] = (user) => broker.rawOf(user);

beforeAll(async () => {
  broker = await GeneratedBroker.start('r1,r2');
  await ensureStreams(await busOf('setup'), streamsOptions);
});
afterEach(() => broker.closeOpened());
afterAll(() => broker.stop());

const everywhere = [
  '$JS.API.STREAM.NAMES',
  '$JS.API.STREAM.LIST',
  '$JS.API.INFO',
  '$JS.API.STREAM.DELETE.JOURNAL',
  '$JS.API.STREAM.DELETE.KV_runners',
  '$JS.API.STREAM.MSG.DELETE.JOURNAL',
  '$JS.API.STREAM.PURGE.LOGS',
  '$JS.API.STREAM.SNAPSHOT.JOURNAL',
  '$JS.API.STREAM.CREATE.OTHER',
  '$JS.API.CONSUMER.CREATE.JOURNAL.c',
  '$JS.API.CONSUMER.DURABLE.CREATE.JOURNAL.c',
  '$JS.API.CONSUMER.NAMES.KV_members',
  '$SYS.REQ.SERVER.PING',
  'live.log.run1.r1',
  'some.thing',
];
const journals = [
  'journal.0',
  '$JS.API.STREAM.MSG.GET.JOURNAL',
  '$JS.API.DIRECT.GET.JOURNAL',
  '$JS.API.DIRECT.GET.JOURNAL.journal.0',
  '$JS.API.STREAM.PURGE.JOURNAL',
  '$JS.API.STREAM.INFO.JOURNAL',
];
const ownersOnly = [
  'events.run1',
  'opened.0',
  'demand.m1',
  'release.r1',
  'release.r2',
  'job.r1',
  'job.r2',
  'stop.r2',
  '$KV.members.m1',
];

const forbidden: {
  readonly user: string;
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}[] = [
  {
    user: 'runner_r1',
    publish: [
      ...everywhere,
      ...journals,
      ...ownersOnly,
      'log.run1.r2',
      'committing',
      'pull.m1.r2',
      'slip.r2',
      'run.0.result.r2',
      'run.0.create',
      'run.0.cancel',
      'run.0.get',
      'run.0.watch',
      '$KV.runners.r2.s',
      '$KV.runners.r1',
      '$KV.runners.r1.s.more',
      '$JS.API.DIRECT.GET.KV_runners.$KV.runners.r2.s',
      '$JS.API.DIRECT.GET.KV_runners',
      '$JS.API.STREAM.MSG.GET.KV_runners',
      '$JS.API.CONSUMER.CREATE.KV_runners.c',
      '$JS.API.STREAM.INFO.KV_runners',
      '$JS.API.DIRECT.GET.LOGS',
      '$JS.API.DIRECT.GET.LOGS.log.run1.r2',
      '$JS.API.STREAM.MSG.GET.LOGS',
      '$JS.API.CONSUMER.CREATE.LOGS.c',
      'svc.auth.token',
      'svc.auth.user',
      'svc.registry.resolve',
      'svc.webhook-ingest.list',
      '$KV.revocations.session.s',
      '$JS.API.CONSUMER.CREATE.KV_revocations.c',
      'delivery.x',
    ],
    subscribe: [
      '>',
      '*',
      'svc.registry.package',
      'job.>',
      'job.*',
      'job.r2',
      'stop.r2',
      'release.r2',
      'release.*',
      'run.*.>',
      'run.0.create',
      'pull.*.*',
      'pull.m1.r1',
      'events.*',
      'opened.*',
      'live.log.*.*',
      'live.log.run1.r1',
      'log.*.*',
      'log.run1.r2',
      'journal.*',
      '$KV.runners.>',
      '$KV.members.>',
      '$JS.>',
      '$SYS.>',
      '_INBOX.>',
      '_INBOX_runner_r2.>',
      '_INBOX_scheduler.>',
      '_R_.>',
      '_GR_.>',
    ],
  },
  {
    user: 'gateway',
    publish: [
      ...everywhere,
      ...journals,
      ...ownersOnly,
      'run.0.open',
      'run.0.result.r1',
      'pull.m1.r1',
      'log.run1.r1',
      '$KV.runners.r1.s',
      '$JS.API.CONSUMER.CREATE.KV_members.c',
      '$JS.API.CONSUMER.CREATE.LOGS.c',
      '$JS.API.DIRECT.GET.KV_members',
      '$KV.revocations.session.s',
      'delivery.x',
      'svc.registry.artifacts.r1.put',
      'svc.registry.artifacts.r1.cache-begin',
      'svc.registry.upload.r1.some',
    ],
    subscribe: [
      '>',
      'svc.auth.token',
      'run.*.>',
      'run.0.create',
      'committing',
      'pull.*.*',
      'job.*',
      'job.r1',
      'stop.r1',
      'release.r1',
      'demand.*',
      'log.*.*',
      'journal.*',
      '$KV.members.>',
      '$JS.>',
      '_INBOX_scheduler.>',
      '_R_.>',
    ],
  },
  {
    user: 'scheduler',
    publish: [
      // Deleted runs' logs are removed by schedulers (P34).
      ...everywhere.filter((subject) => subject !== '$JS.API.STREAM.PURGE.LOGS'),
      '$KV.runners.r1.s',
      '$JS.API.STREAM.UPDATE.JOURNAL',
      '$JS.API.STREAM.CREATE.JOURNAL',
      '$JS.API.STREAM.PURGE.KV_members',
      '$JS.API.STREAM.MSG.DELETE.KV_members',
      '$JS.API.CONSUMER.CREATE.LOGS.c',
      'pull.m1.r1',
      'run.0.create',
      'run.0.result.r1',
      '_INBOX_gateway.x',
    ],
    subscribe: [
      '>',
      'journal.*',
      'events.*',
      'job.*',
      'log.*.*',
      'live.log.*.*',
      '$KV.members.>',
      '$JS.>',
      '$SYS.>',
      '_INBOX_gateway.>',
      '_INBOX_setup.>',
      '_R_.>',
    ],
  },
  {
    user: 'setup',
    publish: [
      ...everywhere,
      'journal.0',
      'log.run1.r1',
      '$KV.members.m1',
      '$JS.API.STREAM.MSG.GET.JOURNAL',
      '$JS.API.DIRECT.GET.JOURNAL',
      '$JS.API.STREAM.PURGE.JOURNAL',
      'run.0.create',
      'job.r1',
    ],
    subscribe: ['>', 'journal.*', 'run.*.>', 'job.r1', 'log.*.*', '$JS.>', '_INBOX_scheduler.>', '_R_.>'],
  },
  {
    user: 'backup',
    publish: [
      // To copy them is what it is there for.
      ...everywhere.filter((subject) => !/STREAM\.(?:NAMES|SNAPSHOT\.JOURNAL)$/.test(subject)),
      ...journals.filter((subject) => !subject.includes('STREAM.INFO')),
      'log.run1.r1',
      '$KV.members.m1',
      '$KV.controls.all',
      '$JS.API.STREAM.CREATE.JOURNAL',
      '$JS.API.STREAM.UPDATE.JOURNAL',
      '$JS.API.STREAM.SNAPSHOT.KV_runners',
      '$JS.API.STREAM.RESTORE.OTHER',
      '$JS.API.STREAM.MSG.GET.JOURNAL',
      'run.0.create',
      'job.r1',
    ],
    subscribe: ['>', 'journal.*', 'run.*.>', 'job.r1', 'log.*.*', '$JS.>', '_INBOX_scheduler.>', '_R_.>'],
  },
  {
    user: 'auth',
    publish: [
      ...everywhere,
      ...journals,
      ...ownersOnly,
      'run.0.create',
      'log.run1.r1',
      '$JS.API.DIRECT.GET.LOGS',
      '$KV.runners.r1.s',
      'svc.registry.resolve',
      'svc.webhook-ingest.list',
      '$JS.API.STREAM.PURGE.KV_revocations',
      '$JS.API.CONSUMER.CREATE.KV_revocations.c',
    ],
    subscribe: [
      '>',
      'run.*.>',
      'events.*',
      'job.r1',
      'live.log.*.*',
      '_INBOX_gateway.>',
      '_R_.>',
      'svc.>',
      'svc.registry.resolve',
      '$KV.revocations.>',
    ],
  },
  {
    user: 'registry',
    publish: [
      // Logs of ended runs are archived by it (P34).
      ...everywhere.filter((subject) => subject !== '$JS.API.STREAM.PURGE.LOGS'),
      ...journals,
      ...ownersOnly,
      'run.0.create',
      'log.run1.r1',
      '$JS.API.STREAM.UPDATE.LOGS',
      '$JS.API.STREAM.MSG.DELETE.LOGS',
      '$JS.API.CONSUMER.CREATE.LOGS.c',
      '$KV.revocations.session.s',
      '$JS.API.STREAM.CREATE.OBJ_packages',
      '$O.other.C.x.0',
      'svc.auth.user',
      'svc.auth.tokens.create',
      'svc.auth.tokens.revoke',
      'svc.webhook-ingest.list',
    ],
    subscribe: [
      '>',
      'run.*.>',
      'events.*',
      'job.r1',
      'live.log.*.*',
      '_INBOX_gateway.>',
      '_R_.>',
      'svc.auth.token',
      '$KV.revocations.>',
    ],
  },
  {
    user: 'webhook-ingest',
    publish: [
      ...everywhere,
      ...journals,
      ...ownersOnly,
      // Strangers speak to it: it lets no run of theirs have secrets.
      'run.0.approve',
      'run.0.decide',
      'run.0.cancel',
      'run.0.delete',
      'run.0.open',
      'run.0.result.r1',
      'log.run1.r1',
      '$JS.API.DIRECT.GET.LOGS',
      '$KV.revocations.session.s',
      '$JS.API.STREAM.INFO.KV_revocations',
      'svc.auth.token',
      'svc.auth.tokens.create',
      'svc.registry.package',
      '$JS.API.CONSUMER.CREATE.DELIVERIES.other',
      '$JS.API.CONSUMER.DELETE.DELIVERIES.ingest',
      '$JS.API.STREAM.UPDATE.DELIVERIES',
    ],
    subscribe: [
      '>',
      'run.*.>',
      'run.0.create',
      'job.r1',
      'live.log.*.*',
      'delivery.*',
      '_INBOX_gateway.>',
      '_R_.>',
      'svc.auth.user',
      '$KV.revocations.>',
    ],
  },
];

describe('what is not allowed is refused at once', () => {
  for (const { user, publish, subscribe } of forbidden) {
    it(`${user} cannot publish it`, async () => {
      const bus = await busOf(user);
      const answers = await Promise.all(
        publish.map(async (subject) => [
          subject,
          await bus.request(subject, {}, patient).catch((error: { tag?: string }) => error.tag),
        ]),
      );
      expect(answers).toEqual(publish.map((subject) => [subject, 'NotPermitted']));
    });

    it(`${user} cannot subscribe to it`, async () => {
      const raw = await rawOf(user);
      for (const subject of subscribe)
        expect([subject, (await subscribing(raw, subject))?.message]).toEqual([
          subject,
          expect.stringMatching(/permissions violation/i),
        ]);
    });
  }

  it("P10: a runner cannot have an answer of the broker delivered as another's job, or into a journal or log", async () => {
    const [raw, runner, other, scheduler] = [
      await rawOf('runner_r1'),
      await busOf('runner_r1'),
      await busOf('runner_r2'),
      await busOf('scheduler'),
    ];
    const jobs: unknown[] = [];
    const take = (body: unknown): void => void jobs.push(body);
    for (const subject of [subjects.job('r2'), subjects.stop('r2')]) other.respond(subject, take);
    other.subscribe(subjects.release('r2'), take);
    await other.flush();
    const journal = openLog(scheduler, 0);
    const before = await journal.last();
    // What a forged job would say, kept where the broker will read it out.
    await acquireLease(runner, buckets.runners, 'r1.forged', { forged: true }, { ttlMs: 60_000 });
    for (const reply of [
      'job.r2',
      'stop.r2',
      'release.r2',
      'journal.0',
      'journal.3',
      'log.run9.r2',
      '$KV.members.forged',
      '$KV.runners.r2.s',
    ]) {
      raw.publish('$JS.API.DIRECT.GET.KV_runners.$KV.runners.r1.forged', '', { reply });
      raw.publish('log.run9.r1', chunk(0), { reply });
      raw.publish('$JS.API.STREAM.INFO.KV_members', '', { reply });
    }
    // Answered in turn: what went before has been answered too.
    await raw.request('$JS.API.DIRECT.GET.KV_runners.$KV.runners.r1.forged', '', timely);
    await raw.request('log.run9.r1', chunk(2), timely);
    await raw.request('$JS.API.STREAM.INFO.KV_members', '', timely);
    await scheduler.request(subjects.job('r2'), 'the only one', soon);
    expect(jobs).toEqual(['the only one']);
    expect(await journal.last()).toEqual(before);
    expect(await openLog(scheduler, 3).last()).toBeNull();
    expect(new Set((await chunksOf(scheduler, 'run9')).map(({ runner: from }) => from))).toEqual(new Set(['r1']));
    const keys: string[] = [];
    const watches = [buckets.members, buckets.runners].map((bucket) =>
      watchLeases(scheduler, bucket, (event) => event.kind === 'put' && keys.push(event.key)),
    );
    await Promise.all(watches.map(({ ready }) => ready));
    for (const watch of watches) watch.stop();
    expect(keys).toEqual(['r1.forged']);
  });

  it('P10: a watch that a runner points at others reaches no journal, log or key, and shows them memberships at most', async () => {
    const [raw, other, scheduler] = [await rawOf('runner_r1'), await busOf('runner_r2'), await busOf('scheduler')];
    const jobs: unknown[] = [];
    const take = (body: unknown): void => void jobs.push(body);
    for (const subject of [subjects.job('r2'), subjects.stop('r2')]) other.respond(subject, take);
    scheduler.respond(subjects.ownerAll(0), take);
    await Promise.all([other.flush(), scheduler.flush()]);
    const membership = { member: 'm2' };
    await acquireLease(scheduler, buckets.members, 'm2', membership, { ttlMs: 60_000 });
    const before = await openLog(scheduler, 0).last();
    const own = Promise.withResolvers<void>();
    raw.subscribe(`${inboxPrefixOf('runner_r1')}.own`, { callback: () => own.resolve() });
    const hostile = [
      'journal.0',
      'journal.3',
      'job.r2',
      'stop.r2',
      'log.run8.r2',
      '$KV.members.m3',
      '$JS.API.STREAM.PURGE.LOGS',
    ];
    // The last one is delivered: what came before it had its turn.
    for (const deliver of [...hostile, subjects.owner(0, 'create'), `${inboxPrefixOf('runner_r1')}.own`]) {
      const name = `c${crypto.randomUUID()}`;
      const config = {
        name,
        deliver_subject: deliver,
        deliver_policy: 'last_per_subject',
        filter_subject: '$KV.members.m2',
        ack_policy: 'none',
        max_deliver: 1,
        mem_storage: true,
        num_replicas: 1,
        inactive_threshold: 10e9,
      };
      await raw.request(
        `$JS.API.CONSUMER.CREATE.KV_members.${name}`,
        JSON.stringify({ stream_name: 'KV_members', config }),
        timely,
      );
    }
    await own.promise;
    await scheduler.request(subjects.job('r2'), 'the only job', soon);
    expect(jobs.filter((body) => !isDeepStrictEqual(body, membership))).toEqual(['the only job']);
    expect(await openLog(scheduler, 0).last()).toEqual(before);
    expect(await openLog(scheduler, 3).last()).toBeNull();
    expect(await chunksOf(scheduler, 'run8')).toEqual([]);
  });
});
