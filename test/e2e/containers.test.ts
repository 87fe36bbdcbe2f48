/** Stages with an image and services, as a user has them: on a server, and by `penstock run`. Needs podman or docker. */
import { execFile } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { containersOf, engineForTests, IMAGE, IMAGE_OF_SERVER } from '@penstock/executor/testing-containers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';

const engine = await engineForTests('stages with an image, on a server and by the command');
const MAIN = new URL('../../cli/src/main.ts', import.meta.url).pathname;

const YAML = `pipeline: {name: with-a-server-beside}
stages:
  test:
    image: ${IMAGE}
    run:
      - echo "$IN_IMAGE"; wget -q -O answer http://db:8080/index.html
      - echo "answer=$(cat answer)" >>"$SERVICE_OUTPUT"
    outputs: [answer]
    resources: {cpu: 1, memory: 256Mi}
    timeout: 60s
    services:
      db: {image: ${IMAGE_OF_SERVER}, ready: 'wget -q -O /dev/null http://127.0.0.1:8080/'}
  after:
    after: test
    env: {ANSWER: '\${{ stages.test.outputs.answer }}'}
    run: echo "told $ANSWER"; cat answer
`;

describe.skipIf(engine === null)('a stage with an image and a service', () => {
  describe('on a server', () => {
    let home: ReturnType<typeof temporaryFolder>;
    let server: RunningServer;
    beforeAll(async () => {
      home = temporaryFolder('penstock-containers-');
      server = await startServer({
        dataDir: home.path,
        env: {
          SERVICE_SLOTS: '2',
          SERVICE_EXECUTORS: 'process,container',
          SERVICE_STAGE_UIDS: '300100-300199',
        },
      });
    });
    afterAll(async () => {
      await server.stop();
      home.remove();
    });

    interface Run {
      readonly id: string;
      readonly status: string;
      readonly stages: readonly { readonly name: string; readonly reason: string | null }[];
    }

    async function trigger(yaml: string): Promise<Run> {
      const { data } = await server.graphql<{ triggerPipeline: { run: Run } }>(TRIGGER, { yaml, waitSeconds: 90 });
      return data.triggerPipeline.run;
    }

    async function linesOf({ id }: Run): Promise<[stream: string, line: string][]> {
      const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
      return events
        .filter(({ event }) => event === 'stage_log')
        .map(({ data }) => [String(data['stream']), String(data['line'])]);
    }

    it('runs in it, reaches the service by name, and hands its files and outputs on', async () => {
      const run = await trigger(YAML);
      expect(run.status).toBe('SUCCESS');
      const lines = await linesOf(run);
      expect(lines).toEqual(
        expect.arrayContaining([
          ['stdout', 'yes'],
          ['stdout', 'told served'],
          ['stdout', 'served'],
        ]),
      );
      expect(lines.some(([stream, line]) => stream === 'service:db' && line.includes('response:200'))).toBe(true);
    });

    it('fails with the reason image where the image cannot be had, and with the reason service where that is never ready', async () => {
      const noImage = await trigger(
        'pipeline: {name: no-image}\nstages:\n  test: {image: localhost/penstock-test-nothing:1, run: "true"}\n',
      );
      expect(noImage.status).toBe('FAILED');
      const lines = await linesOf(noImage);
      expect(lines.map(([, line]) => line).join('\n')).toContain('could not be had');
      const unready = await trigger(
        `pipeline: {name: unready}\nstages:\n  test:\n    image: ${IMAGE}\n    run: "true"\n    services: {db: {image: ${IMAGE_OF_SERVER}, ready: 'false', ready_timeout: 1s}}\n`,
      );
      expect(unready.status).toBe('FAILED');
      expect((await linesOf(unready)).map(([, line]) => line).join('\n')).toContain('was not ready within 1 s');
    });
  });

  describe('by penstock run', () => {
    it('runs in it as the owner of the folder', async () => {
      const folder = mkdtempSync(join(tmpdir(), 'penstock-local-'));
      try {
        writeFileSync(join(folder, '.pipeline.yaml'), YAML);
        if (process.getuid?.() === 0) chownSync(folder, 190_005, 190_005);
        const { stdout } = await promisify(execFile)(process.execPath, [MAIN, 'run'], { cwd: folder });
        expect(stdout).toContain('told served');
        expect(stdout).toContain('SUCCESS');
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    });

    it('leaves no container behind', () => {
      expect(containersOf(engine, `local ${process.pid}`)).toEqual([]);
    });
  });
});
