/** `npm start`: everything that is missing, then the server with the arguments given. */
import { join } from 'node:path';
import { exitLike, runChild } from './child.js';
import { keptForNow, madeCommand } from './command.js';
import { withCompileCache } from './compile-cache.js';
import { ensure, root } from './ensure.js';
import { runEntry } from './errors.js';
import { withBoundedMemory } from './memory.js';
import { withoutNpm } from './without-npm.js';

await runEntry(async () => {
  const { node, nodeMajor, env } = await ensure({ broker: true, dashboard: true });
  const file = keptForNow(madeCommand(root, 'serve', nodeMajor)) ?? join(root, 'cli/src/main.ts');
  exitLike(
    await runChild(node, [file, 'serve', ...process.argv.slice(2)], {
      env: withBoundedMemory(withCompileCache(withoutNpm(env, root), root), 'serve'),
    }),
  );
});
