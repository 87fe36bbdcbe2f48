/** The broker's own command, for tests: found on the PATH, or built with Go by the versions and sums in `test/support/nats-cli`. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Built, builtOnce, programOnPath, runTool } from './build-cache.ts';

const MODULE = fileURLToPath(new URL('../../../test/support/nats-cli/', import.meta.url));
const COMMAND = 'github.com/nats-io/natscli/nats';

export async function natsCommand(env: NodeJS.ProcessEnv = process.env): Promise<Built> {
  const path = programOnPath('nats', env);
  if (path !== undefined) return { path };
  const go = programOnPath('go', env);
  if (go === undefined) return { problem: 'no nats, and no Go to build it, on this machine' };
  return await builtOnce({
    name: 'nats-cli',
    sources: ['go.mod', 'go.sum'].map((file) => join(MODULE, file)),
    output: 'nats',
    env,
    async make(output) {
      const argv = ['build', '-trimpath', '-buildvcs=false', '-ldflags', '-s -w', '-o', output, COMMAND];
      const problem = await runTool(go, argv, { cwd: MODULE, env: { ...env, CGO_ENABLED: '0' } });
      return problem === null ? null : `nats cannot be built: go build ${problem}`;
    },
  });
}
