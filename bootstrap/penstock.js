#!/usr/bin/env node
/** The command `penstock`: dependencies and Node 26, a broker only for `serve`, then the command in the user's own folder. */
import { join } from 'node:path';
import { exitLike, runChild } from './child.js';
import { withCompileCache } from './compile-cache.js';
import { ensure, root } from './ensure.js';
import { runEntry } from './errors.js';
import { withoutNpm } from './without-npm.js';

await runEntry(async () => {
  const args = process.argv.slice(2);
  const { node, env } = await ensure({ broker: args[0] === 'serve' });
  // `npm run penstock` changes into the checkout first and keeps the folder it was called from in INIT_CWD.
  const cwd = env.npm_lifecycle_event === 'penstock' && env.INIT_CWD ? env.INIT_CWD : process.cwd();
  exitLike(
    await runChild(node, [join(root, 'cli/src/main.ts'), ...args], {
      env: withCompileCache(withoutNpm(env, root)),
      cwd,
    }),
  );
});
