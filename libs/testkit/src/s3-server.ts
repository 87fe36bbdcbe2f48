/** A server that speaks S3, for tests: gofakes3, built with Go by the versions and sums in `test/support/s3-server`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { builtOnce, programOnPath, runTool } from './build-cache.ts';

export interface TestS3Server {
  /** `http://127.0.0.1:port`; any credentials will do. */
  readonly endpoint: string;
  /** Empty when it starts. */
  readonly bucket: 'test';
  stop(): Promise<void>;
}

const MODULE = fileURLToPath(new URL('../../../test/support/s3-server/', import.meta.url));
const START_MS_MAX = 60_000;

/** Null: there is none to be had on this machine, which is told at the end of `npm test`. */
export async function startTestS3Server(env: NodeJS.ProcessEnv = process.env): Promise<TestS3Server | null> {
  const binary = await builtServer(env);
  if ('problem' in binary) {
    const file = env['PENSTOCK_NOT_RUN_FILE'];
    if (file) appendFileSync(file, `the object storage on S3: ${binary.problem}\n`);
    return null;
  }
  const child = spawn(binary.path, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const [endpoint] = (await once(lines, 'line', { signal: AbortSignal.timeout(START_MS_MAX) })) as [string];
  return {
    endpoint,
    bucket: 'test',
    async stop() {
      const ended = once(child, 'exit');
      child.stdin.end();
      await ended;
    },
  };
}

async function builtServer(env: NodeJS.ProcessEnv): Promise<{ readonly path: string } | { readonly problem: string }> {
  const go = programOnPath('go', env);
  if (go === undefined) return { problem: 'no Go (to build gofakes3) on this machine' };
  return await builtOnce({
    name: 's3-server',
    sources: ['main.go', 'go.mod', 'go.sum'].map((file) => join(MODULE, file)),
    output: 's3-server',
    env,
    async make(output) {
      const argv = ['build', '-trimpath', '-buildvcs=false', '-o', output, '.'];
      const problem = await runTool(go, argv, { cwd: MODULE, env: { ...env, CGO_ENABLED: '0' } });
      return problem === null ? null : `gofakes3 cannot be built: go build ${problem}`;
    },
  });
}
