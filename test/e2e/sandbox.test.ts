/** Stages of a server whose executor is the sandbox of bubblewrap. Where the machine cannot give one it is reported as not run. */
import { appendFileSync, chmodSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { whySandboxLacks } from '@penstock/executor';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from '../support/server.ts';
import { readStream } from '../support/sse.ts';

const STAGE_UIDS = process.getuid?.() === 0 ? { first: 310_000, last: 310_099 } : undefined;
const lacking = await whySandboxLacks(STAGE_UIDS);
const notRun = process.env['PENSTOCK_NOT_RUN_FILE'];
if (lacking !== null && notRun !== undefined) appendFileSync(notRun, `stages in a sandbox: ${lacking}\n`);

let home: ReturnType<typeof temporaryFolder>;
let server: RunningServer;

async function run(yaml: string): Promise<{ status: string; lines: string[] }> {
  const { data } = await server.graphql<{ triggerPipeline: { run: { id: string; status: string } } }>(TRIGGER, {
    yaml,
    waitSeconds: 60,
  });
  const { id, status } = data.triggerPipeline.run;
  const { events } = await readStream(`${server.url}/pipeline/${id}/logs`, server.apiKey);
  const lines = events.filter(({ event }) => event === 'stage_log').map(({ data: { line } }) => String(line));
  return { status, lines };
}

describe.runIf(lacking === null)('a stage in a sandbox', () => {
  beforeAll(async () => {
    home = temporaryFolder('penstock-sandbox-');
    chmodSync(home.path, 0o700);
    const dataDir = join(home.path, 'share', 'penstock');
    mkdirSync(dataDir, { recursive: true });
    const uids = STAGE_UIDS === undefined ? 'off' : `${STAGE_UIDS.first}-${STAGE_UIDS.last}`;
    server = await startServer({
      dataDir,
      env: { SERVICE_EXECUTORS: 'sandbox', SERVICE_STAGE_UIDS: uids, SERVICE_SLOTS: '2' },
    });
  });
  afterAll(async () => {
    await server?.stop();
    home.remove();
  });

  it('finds its workspace, its outputs and what the stage before it left, and nothing of the server', async () => {
    const { status, lines } = await run(
      [
        'pipeline: {name: two}',
        'stages:',
        '  first:',
        '    outputs: [x]',
        '    run: echo left > file; echo temporary > /tmp/file; echo x=1 >> "$SERVICE_OUTPUT"; pwd; ls /proc | grep -c "^[0-9]"',
        '  second:',
        '    after: first',
        `    run: cat file /tmp/file; ls -A ${server.dataDir} ${home.path}; ls -A ${join(server.dataDir, 'work', '0')} | wc -l`,
        '',
      ].join('\n'),
    );
    expect(status).toBe('SUCCESS');
    expect(lines).toEqual(expect.arrayContaining(['left', 'work', '1']));
    expect(lines.join('\n')).not.toContain('api-key');
  });
});
