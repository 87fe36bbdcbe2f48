/** A disk that is full under `penstock serve`: what it says meanwhile, and that it goes on by itself when there is room again. */
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { canMount, SmallDisk } from '@penstock/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startServer, TRIGGER, type RunningServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const DISK_BYTES = 200 * 1024 ** 2;
const STEP_MS_MAX = 90_000;
const TEST_MS_MAX = 300_000;
const SMALL = 'pipeline:\n  name: p\nstages:\n  a:\n    run: echo hello\n';
/** Does not fit into what is left of the blocks that files have already. */
const LARGE = `# ${randomBytes(32 * 1024).toString('hex')}\n${SMALL}`;

describe.runIf(canMount('a full disk under serve'))('a full disk (only where a file system can be mounted)', () => {
  let disk: SmallDisk;
  let server: RunningServer;
  beforeEach(async () => {
    disk = new SmallDisk(DISK_BYTES);
    server = await startServer({ dataDir: join(disk.folder, 'data') });
  });
  afterEach(async () => {
    disk.empty();
    await server.stop();
    disk.remove();
  });

  /** How the run has ended, else why there is none. */
  async function outcomeOf(yaml: string, waitSeconds: number): Promise<string | undefined> {
    const answer = await server.graphql<{ triggerPipeline: { run: { status: string } } } | null>(TRIGGER, {
      yaml,
      waitSeconds,
    });
    return answer.data?.triggerPipeline.run.status ?? answer.errors?.[0]?.extensions?.code;
  }
  const ready = (): Promise<Response> => fetch(`${server.url}/ready`);

  it(
    'is told by /ready with the reason, refuses triggers, and is over without a restart of serve',
    async () => {
      expect(await outcomeOf(SMALL, 60)).toBe('SUCCESS');
      expect((await ready()).status).toBe(200);
      disk.fill();
      const refused = outcomeOf(LARGE, 0);
      await until('it is not ready', async () => (await ready()).status === 503, STEP_MS_MAX);
      expect(await refused).toBe('UNAVAILABLE');
      expect(await (await ready()).text()).toContain('no scheduler can commit');
      disk.empty();
      await until('it is ready again', async () => (await ready()).status === 200, STEP_MS_MAX);
      expect(await outcomeOf(SMALL, 60)).toBe('SUCCESS');
      expect([server.child.exitCode, server.child.signalCode]).toEqual([null, null]);
    },
    TEST_MS_MAX,
  );

  it(
    'of the object storage fails a stage that keeps files at once, with the reason artifacts and a line that says why, and the next one has room',
    async () => {
      const other = await startServer({ env: { SERVICE_OBJECTS_URL: `file:${join(disk.folder, 'objects')}` } });
      const keeping = `${SMALL.replace('echo hello', 'echo hello > f')}    artifacts: [f]\n`;
      const ask = async (): Promise<unknown> => {
        const { data } = await other.graphql<{ triggerPipeline: { run: { status: string; stages: unknown[] } } }>(
          `mutation ($yaml: String!) {
            triggerPipeline(yaml: $yaml, waitSeconds: 60) { run { id status verdict stages { status reason } } }
          }`,
          { yaml: keeping },
        );
        return data.triggerPipeline.run;
      };
      try {
        disk.fill(DISK_BYTES / 25);
        const run = (await ask()) as { readonly id: string };
        expect(run).toMatchObject({ status: 'FAILED', stages: [{ status: 'FAILED', reason: 'artifacts' }] });
        const told = await fetch(`${other.url}/pipeline/${run.id}/logs`, {
          headers: { authorization: `Bearer ${other.apiKey}` },
        });
        expect(await told.text()).toContain('object storage has no room left');
        expect(other.output()).toContain('are left to others on it');
        disk.empty();
        expect(await ask()).toMatchObject({ status: 'SUCCESS' });
      } finally {
        await other.stop();
      }
    },
    TEST_MS_MAX,
  );
});
