#!/usr/bin/env node
/** The command `penstock`: dependencies and Node 26, a broker only where one is started, then the command in the user's own folder. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { keptForNow, madeCommand, root } from './command.js';
import { withCompileCache } from './compile-cache.js';
import { BootstrapProblem, runEntry } from './errors.js';
import { withoutNpm } from './without-npm.js';

const main = join(root, 'cli/src/main.ts');

await runEntry(async () => {
  const args = process.argv.slice(2);
  // Made from the dependencies that are in place, for this Node: nothing else is to be looked at, but by a server that has a broker and a dashboard.
  const made = args[0] === 'serve' ? undefined : keptForNow(madeCommand(root, args[0]));
  if (made !== undefined) await runHere(made, args, process.env);
  else await prepareAndRun(args);
});

async function prepareAndRun(args) {
  const { ensure } = await import('./ensure.js');
  const isRestore = args[0] === 'admin' && args.includes('restore');
  const isServe = args[0] === 'serve';
  const { node, nodeMajor, env } = await ensure({ broker: isServe || isRestore, dashboard: isServe });
  const file = keptForNow(madeCommand(root, args[0], nodeMajor)) ?? main;
  if (node === process.execPath) return await runHere(file, args, env);
  const { exitLike, runChild } = await import('./child.js');
  const { withBoundedMemory } = await import('./memory.js');
  const given = withBoundedMemory(environmentOf(env), args[0]);
  exitLike(await runChild(node, [file, ...args], { env: given, cwd: folderOf(env) }));
}

/** In this process. */
async function runHere(file, args, env) {
  const given = environmentOf(env);
  const folder = folderOf(env);
  for (const name of Object.keys(process.env)) if (!Object.hasOwn(given, name)) delete process.env[name];
  Object.assign(process.env, given);
  process.chdir(folder);
  process.argv = [process.execPath, main, ...args];
  // Node 20 has none, and does not come here.
  const { enableCompileCache } = await import('node:module');
  enableCompileCache(given.NODE_COMPILE_CACHE);
  await import(pathToFileURL(file).href);
}

function environmentOf(env) {
  return withCompileCache(withoutNpm(env, root), root);
}

/** `npm run penstock` changes into the checkout first and keeps the folder it was called from in INIT_CWD. */
function folderOf(env) {
  if (env.npm_lifecycle_event === 'penstock' && env.INIT_CWD) return env.INIT_CWD;
  try {
    return process.cwd();
  } catch {
    throw new BootstrapProblem('the folder that you are in is not there any more: go to another one.');
  }
}
