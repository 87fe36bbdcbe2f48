import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectBus, type Bus, type BusSubscription, type Job, type ResultRequest } from '@penstock/bus';
import { packFolder, type PackagePart, type PackageRequest } from '@penstock/extension';
import { answerCalls } from '@penstock/service';
import { startTestBroker, type TestBroker } from '@penstock/testkit';
import { silentLogger } from '@penstock/telemetry';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { startRunner, type Runner } from '../src/index.ts';
import { FakeScheduler, RUNNER } from './fake-scheduler.ts';

let broker: TestBroker;
let bus: Bus;
let scheduler: FakeScheduler;
let runner: Runner;
let folder: string;
let registry: BusSubscription;
/** By hash. */
const packages = new Map<string, Buffer>();
let asked: PackageRequest[];

beforeAll(async () => {
  broker = await startTestBroker();
});
afterAll(() => broker.stop());
beforeEach(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'penstock-packages-')));
  scheduler = await FakeScheduler.start(broker.url);
  bus = await connectBus({ servers: broker.url, name: 'runner' });
  asked = [];
  registry = answerCalls(scheduler.bus, 'registry', {
    package: (request: PackageRequest): PackagePart => {
      asked.push(request);
      const bytes = packages.get(request.hash) ?? Buffer.alloc(0);
      return { data: bytes.subarray(request.offset, request.offset + 100).toString('base64'), size: bytes.length };
    },
  });
  runner = await startRunner({
    bus,
    runnerId: RUNNER,
    slots: 2,
    labels: [],
    dataDir: join(folder, 'data'),
    leaseMs: 6_000,
    graceMs: 500,
    log: silentLogger(),
  });
});
afterEach(async () => {
  await runner.close();
  registry.stop();
  await bus.close();
  await scheduler.close();
  rmSync(folder, { recursive: true, force: true });
});

async function publish(): Promise<NonNullable<Job['extension']>> {
  const source = join(folder, 'source');
  mkdirSync(join(source, 'lib'), { recursive: true });
  writeFileSync(
    join(source, 'extension.yaml'),
    'id: utility/greet\nversion: 1.0.0\ndescription: Greets.\nrun: sh "$SERVICE_EXTENSION_PATH/lib/greet.sh"\n',
  );
  writeFileSync(join(source, 'lib', 'greet.sh'), 'echo hello\n');
  const { bytes, hash } = await packFolder(source);
  packages.set(hash, Buffer.from(bytes));
  return { id: 'utility/greet', version: '1.0.0', hash };
}

async function run(
  more: Partial<Job> & { readonly script?: string },
): Promise<{ readonly job: Job; readonly result: ResultRequest; readonly log: string }> {
  const { job } = await scheduler.grant(more);
  const result = await scheduler.results.next();
  return { job, result, log: await scheduler.logOf(job.runId) };
}

it('a stage finds the package of its extension, fetched once, and what it does to it reaches no other stage', async () => {
  const extension = await publish();
  const script =
    'sh "$SERVICE_EXTENSION_PATH/lib/greet.sh"; chmod -R u+w "$SERVICE_EXTENSION_PATH"; echo "echo changed" >"$SERVICE_EXTENSION_PATH/lib/greet.sh"; rm "$SERVICE_EXTENSION_PATH/extension.yaml"';
  const first = await run({ extension, script });
  expect(first).toMatchObject({ result: { status: 'success' }, log: 'hello\n' });
  const requests = asked.length;
  expect(requests).toBeGreaterThan(1);
  const second = await run({
    extension,
    script: 'sh "$SERVICE_EXTENSION_PATH/lib/greet.sh"; ls "$SERVICE_EXTENSION_PATH"',
  });
  expect(second.log).toBe('hello\nextension.yaml\nlib\n');
  expect(asked).toHaveLength(requests);
  expect(readdirSync(join(folder, 'data', 'work', '0', first.job.runId))).toEqual(['shared']);
  expect(readdirSync(join(folder, 'data', 'runner', 'package-copies'))).toEqual([]);
});

it.each([
  ['that the registry does not have', (): void => packages.clear()],
  [
    'whose bytes are others',
    (): void => {
      for (const [hash, bytes] of packages) packages.set(hash, Buffer.concat([bytes, Buffer.from('x')]));
    },
  ],
])('a package %s fails the stage, with the reason checkout and the extension in its log', async (_what, spoil) => {
  const extension = await publish();
  spoil();
  const { job, result, log } = await run({ extension });
  expect(result).toMatchObject({ status: 'failed', reason: 'checkout', logBytes: Buffer.byteLength(log) });
  expect(log).toContain('the extension utility/greet@1.0.0 could not be fetched');
  expect(readdirSync(join(folder, 'data', 'work', '0', job.runId))).toEqual(['shared']);
});
