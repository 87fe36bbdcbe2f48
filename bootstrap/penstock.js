#!/usr/bin/env node
/** The command `penstock`: dependencies and Node 26, a broker only where one is started, then the command in the user's own folder. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { madeCommand } from './command.js';
import { withCompileCache } from './compile-cache.js';
import { ensure, root } from './ensure.js';
import { runEntry } from './errors.js';
import { withBoundedMemory } from './memory.js';
import { withoutNpm } from './without-npm.js';

await runEntry(async () => {
  const args = process.argv.slice(2);
  const isRestore = args[0] === 'admin' && args.includes('restore');
  const { node, env } = await ensure({ broker: args[0] === 'serve' || isRestore, dashboard: args[0] === 'serve' });
  // `npm run penstock` changes into the checkout first and keeps the folder it was called from in INIT_CWD.
  const cwd = env.npm_lifecycle_event === 'penstock' && env.INIT_CWD ? env.INIT_CWD : process.cwd();
  const main = join(root, 'cli/src/main.ts');
  const given = withCompileCache(withoutNpm(env, root));
  if (node === process.execPath) {
    for (const name of Object.keys(process.env)) if (!Object.hasOwn(given, name)) delete process.env[name];
    Object.assign(process.env, given);
    process.chdir(cwd);
    process.argv = [node, main, ...args];
    // Node 20 has none, and does not come here.
    const { enableCompileCache } = await import('node:module');
    enableCompileCache(given.NODE_COMPILE_CACHE);
    await import(pathToFileURL(madeCommand(root, args[0]) ?? main).href);
    return;
  }
  const { exitLike, runChild } = await import('./child.js');
  exitLike(await runChild(node, [main, ...args], { env: withBoundedMemory(given, args[0]), cwd }));
});
