/** The process `penstock`. Loads as little as it can before it knows what is asked. */
import { enableCompileCache } from 'node:module';
import { fileURLToPath } from 'node:url';
import { boundGrowthOfHeaps } from './process/heap-growth.ts';
import { leaveThreadsTheirYoungSpace } from './process/young-space.ts';

// Parsing and stripping our sources anew at each start would cost more than starting Node. Beside the dependencies,
// where only who installed them can write; where that cannot be written there is simply no cache.
if ((process.env['NODE_COMPILE_CACHE'] ?? '') === '') {
  const folder = fileURLToPath(new URL('../../node_modules/.cache/penstock', import.meta.url));
  enableCompileCache(folder);
  // Threads look for it in the environment.
  process.env['NODE_COMPILE_CACHE'] = folder;
}

boundGrowthOfHeaps(process.env);
leaveThreadsTheirYoungSpace(process.env);
const { Terminal } = await import('./output/terminal.ts');
const { runCli } = await import('./cli.ts');

const terminal = new Terminal();
const code = await runCli(process.argv.slice(2), { env: process.env, cwd: process.cwd(), terminal });
process.exit(await terminal.ended(code));
