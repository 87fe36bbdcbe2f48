/**
 * `deploy/backup.sh` and `deploy/restore.sh` as an operator calls them, with the broker's own command, on services that are processes of their own
 * and work meanwhile. `mongodump` is had nowhere here: `test/support/mongo-dump.ts` stands in for it.
 */
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { natsCommand } from '@penstock/testkit';
import { afterAll, describe, expect, it } from 'vitest';
import { reportNotRun, startMongoServer } from '../support/mongodb.ts';
import { temporaryFolder, TRIGGER } from '../support/server.ts';
import { readStream } from '../support/sse.ts';
import { until } from '../support/wait.ts';
import type { StoreKind } from './cluster-store.ts';
import { startCluster, type Cluster, type ClusterOptions } from './cluster.ts';

const script = (name: string): string => fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url));
const STAND_IN = fileURLToPath(new URL('../support/mongo-dump.ts', import.meta.url));
const WAIT_MS = 60_000;
const RUNS_MEANWHILE = 8;

const nats = await natsCommand();
if ('problem' in nats) reportNotRun(`backup and restore of services that run apart: ${nats.problem}`);
const mongo = await startMongoServer();
if ('missing' in mongo) reportNotRun(`backup and restore of a database of MongoDB's protocol: ${mongo.missing}`);
else {
  await mongo.stop();
  reportNotRun(
    'mongodump and mongorestore in deploy/backup.sh and deploy/restore.sh: a program of the tests stands in for them',
  );
}
const kinds: readonly StoreKind[] = 'missing' in mongo ? ['sqlite'] : ['sqlite', 'mongodb'];

const key = (): string => randomBytes(32).toString('base64');
const [masterKey, slipKey] = [key(), key()];

describe.skipIf('problem' in nats).each(kinds)('a backup of services that run apart, with %s', (store) => {
  const folder = temporaryFolder('penstock-cluster-backup-');
  const backup = join(folder.path, 'backup');
  const [dumped, mayGoOn] = [join(folder.path, 'dumped'), join(folder.path, 'may-go-on')];
  let cluster: Cluster | undefined;
  afterAll(async () => {
    await cluster?.stop();
    folder.remove();
  }, 90_000);

  const start = async (more: Pick<ClusterOptions, 'prepare'>): Promise<Cluster> =>
    await startCluster({
      ...{ schedulers: 2, runners: 1, gateways: 1, auths: 1, registries: 1, ingests: 1, partitions: 4, slots: 4 },
      store,
      env: { SERVICE_OBJECTS_URL: 'nats:' },
      envOf: {
        auth: { SERVICE_MASTER_KEY: masterKey, SERVICE_SLIP_KEY: slipKey },
        scheduler: { SERVICE_SLIP_KEY: slipKey },
      },
      ...more,
    });
  const graphql = async <T>(query: string, variables: Record<string, unknown> = {}): Promise<T> => {
    const response = await fetch(`${cluster?.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${cluster?.apiKey}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
    if (errors !== undefined) throw new Error(JSON.stringify(errors));
    return data;
  };
  const trigger = async (yaml: string, waitSeconds = 0): Promise<string> =>
    (await graphql<{ triggerPipeline: { run: { id: string } } }>(TRIGGER, { yaml, waitSeconds })).triggerPipeline.run
      .id;
  const statusOf = async (id: string): Promise<string | undefined> =>
    (await graphql<{ run: { status: string } | null }>('query ($id: String) { run(id: $id) { status } }', { id })).run
      ?.status;
  const succeeds = async (id: string): Promise<void> => {
    let status: string | undefined;
    await until(
      `${id} ends`,
      async () => {
        // A partition that is being opened has no owner to ask yet.
        status = await statusOf(id).catch(() => undefined);
        return status !== undefined && !['PENDING', 'QUEUED', 'RUNNING'].includes(status);
      },
      WAIT_MS,
    );
    expect(status, id).toBe('SUCCESS');
  };

  /** The broker's command, and the two of the database with a stop after the first copy. */
  function tools(): string {
    const bin = join(folder.path, 'bin');
    if (existsSync(bin) || 'problem' in nats) return bin;
    mkdirSync(bin);
    symlinkSync(nats.path, join(bin, 'nats'));
    const run = (verb: string): string => `'${process.execPath}' '${STAND_IN}' ${verb} "$@"`;
    const stop = `[ -e '${dumped}' ] && exit 0\n: >'${dumped}'\nuntil [ -e '${mayGoOn}' ]; do sleep 0.1; done\n`;
    writeFileSync(join(bin, 'mongodump'), `#!/bin/sh\nset -e\n${run('dump')}\n${stop}`, { mode: 0o755 });
    writeFileSync(join(bin, 'mongorestore'), `#!/bin/sh\nexec ${run('restore')}\n`, { mode: 0o755 });
    return bin;
  }
  async function call(
    name: string,
    at: { brokerUrl: string; storeUrl: string },
  ): Promise<{ code: number; said: string }> {
    const env = {
      ...process.env,
      PATH: `${tools()}:${process.env['PATH']}`,
      HOME: folder.path,
      SERVICE_STORE_URL: at.storeUrl,
      SERVICE_NATS_URL: at.brokerUrl,
    };
    return await promisify(execFile)('sh', [script(name), backup], { env }).then(
      ({ stdout, stderr }) => ({ code: 0, said: stdout + stderr }),
      (error: { code: number; stdout: string; stderr: string }) => ({
        code: error.code,
        said: error.stdout + error.stderr,
      }),
    );
  }

  it('has every run that was accepted before it began, and those that were live go on', async () => {
    cluster = await start({});
    const at = { brokerUrl: cluster.brokers.url, storeUrl: cluster.store.directUrl };
    await graphql('mutation { setSecret(name: "TOKEN", value: "kept-under-the-key", pipeline: "secret") { name } }');
    const gates = ['live', 'ends'].map((name) => join(folder.path, name));
    const lost = ', retry: {max: 2, delay: 0s, on: [lost]}';
    const waits = (gate: string | undefined, retry: string): string =>
      `pipeline: {name: waits}\nstages:\n  hold: {run: "until [ -e ${gate} ]; do sleep 0.1; done"${retry}}\n  last: {after: hold, run: echo the end}\n`;
    const live = await trigger(waits(gates[0], lost));
    const ends = await trigger(waits(gates[1], ''));
    const kept = await trigger(
      'pipeline: {name: kept}\nstages: {a: {run: echo said before; echo kept > f, artifacts: f}}\n',
    );
    await succeeds(kept);
    for (const id of [live, ends]) await until(`${id} runs`, async () => (await statusOf(id)) === 'RUNNING', WAIT_MS);
    const accepted: string[] = [];
    let isBusy = true;
    const load = (async () => {
      // What is refused, for an owner is not there yet, was not accepted. Every fourth is waited for: stages that wait take turns with
      // `last`, and are not to be more than one runner takes.
      for (let count = 0; isBusy; count += 1)
        await trigger(
          `pipeline: {name: load-${count}}\nstages: {a: {run: 'true'${lost}}}\n`,
          count % 4 === 3 ? 5 : 0,
        ).then(
          (id) => accepted.push(id),
          () => {},
        );
    })();
    await until('there is load', () => accepted.length > RUNS_MEANWHILE, WAIT_MS);
    const before = [...accepted];
    const asked = call('backup.sh', at).finally(() => {
      isBusy = false;
    });
    if (store === 'mongodb') {
      // The database is half copied: what ends now is ended in the journal, and in what is copied of the database later.
      await until('the first part is copied', () => existsSync(dumped), WAIT_MS);
      writeFileSync(gates[1] ?? '', '');
      await succeeds(ends);
      const many = accepted.length + RUNS_MEANWHILE;
      await until('more has come', () => accepted.length > many, WAIT_MS);
      writeFileSync(mayGoOn, '');
    }
    const said = await asked;
    await load;
    expect(said).toMatchObject({ code: 0, said: expect.stringContaining('is a whole backup') });
    for (const entry of readdirSync(backup, { recursive: true, withFileTypes: true }))
      expect(statSync(join(entry.parentPath, entry.name)).mode & 0o077, entry.name).toBe(0);
    expect(await call('backup.sh', at)).toMatchObject({ code: 1, said: expect.stringContaining('is not empty') });
    expect(await call('restore.sh', at)).toMatchObject({ code: 1, said: expect.stringContaining('has a stream') });
    await cluster.stop();

    cluster = undefined;
    cluster = await start({
      prepare: async (to) =>
        expect(await call('restore.sh', to)).toMatchObject({ code: 0, said: expect.stringContaining('Restored') }),
    });
    for (const id of [...before, kept]) await succeeds(id);
    if (store === 'mongodb') await succeeds(ends);
    writeFileSync(gates[0] ?? '', '');
    await succeeds(live);
    const { events } = await readStream(`${cluster.url}/pipeline/${kept}/logs`, cluster.apiKey);
    expect(events.map(({ data }) => data['line'])).toContain('said before');
    const file = await fetch(`${cluster.url}/pipeline/${kept}/artifacts/a/f`, {
      headers: { authorization: `Bearer ${cluster.apiKey}` },
    });
    expect(await file.text()).toBe('kept\n');
    const secret = `pipeline: {name: secret}\nstages: {a: {run: 'test "$TOKEN" = kept-under-the-key', secrets: [TOKEN]}}\n`;
    await succeeds(await trigger(secret));
  }, 420_000);

  it('is not restored where a byte of it was changed', async () => {
    appendFileSync(join(backup, 'broker', 'JOURNAL', 'backup.json'), ' ');
    const nowhere = { brokerUrl: 'nats://127.0.0.1:1', storeUrl: `sqlite:${join(folder.path, 'nowhere')}` };
    expect(await call('restore.sh', nowhere)).toMatchObject({ code: 1, said: expect.stringContaining('was changed') });
    expect(existsSync(join(folder.path, 'nowhere'))).toBe(false);
  });
});
