/** A server of a tier that lets a key keep three megabytes, whose stages run as users of their own where that is possible. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { startServer, temporaryFolder, TRIGGER, type RunningServer } from './server.ts';
import { readStream } from './sse.ts';

export interface EndedRun {
  readonly id: string;
  readonly status: string;
  readonly stages: readonly { readonly name: string; readonly status: string; readonly reason: string | null }[];
}

export interface SmallServer {
  readonly server: RunningServer;
  /** For the test's own files; removed with the server. */
  readonly folder: string;
  run(yaml: string): Promise<EndedRun>;
  /** What its stages have said. */
  linesOf(runId: string): Promise<string[]>;
  stop(): Promise<void>;
}

const KEPT_MB = 3;
const TRIES_MAX = 5;

export async function startSmallServer(): Promise<SmallServer> {
  const home = temporaryFolder('penstock-small-');
  const tiers = join(home.path, 'tiers.json');
  writeFileSync(tiers, JSON.stringify({ free: { artifactStorageMb: KEPT_MB } }));
  const server = await startServer({
    env: {
      SERVICE_STAGE_UIDS: process.getuid?.() === 0 ? '300000-300099' : 'off',
      SERVICE_TIERS_FILE: tiers,
      SERVICE_TENANT_TIER: 'free',
    },
  });
  return {
    server,
    folder: home.path,
    async run(yaml) {
      for (let tries = 1; ; tries += 1) {
        const { data, errors } = await server.graphql<{ triggerPipeline: { run: EndedRun } }>(TRIGGER, {
          yaml,
          waitSeconds: 60,
        });
        if (errors === undefined) return data.triggerPipeline.run;
        // A machine with much else to do may not come to read the file in time.
        if (tries >= TRIES_MAX || errors[0]?.extensions?.code !== 'UNAVAILABLE')
          throw new Error(JSON.stringify(errors));
      }
    },
    async linesOf(runId) {
      const { events } = await readStream(`${server.url}/pipeline/${runId}/logs`, server.apiKey);
      return events.filter(({ event }) => event === 'stage_log').map(({ data: { line } }) => String(line));
    },
    async stop() {
      await server.stop();
      home.remove();
    },
  };
}
