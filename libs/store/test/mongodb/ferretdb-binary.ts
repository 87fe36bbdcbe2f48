/** FerretDB's binary, built with Go. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Built, builtOnce, runTool } from '@penstock/testkit';

const MODULE = fileURLToPath(new URL('../../../../test/support/ferretdb/', import.meta.url));

export function ferretdbBinary(go: string, env: NodeJS.ProcessEnv): Promise<Built> {
  return builtOnce({
    name: 'ferretdb',
    sources: ['main.go', 'go.mod', 'go.sum'].map((file) => join(MODULE, file)),
    output: 'ferretdb',
    env,
    async make(output) {
      const argv = ['build', '-trimpath', '-buildvcs=false', '-o', output, '.'];
      const problem = await runTool(go, argv, { cwd: MODULE, env: { ...env, CGO_ENABLED: '0' } });
      return problem === null ? null : `go build ${problem}`;
    },
  });
}
