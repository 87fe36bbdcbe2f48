/**
 * Runs one of the project's own programs after installing what is missing.
 *   node bootstrap/run.js                          only installs, and tells what there is
 *   node bootstrap/run.js <file.ts> [arguments]    a TypeScript program of the checkout, with a broker at hand
 *   node bootstrap/run.js --tool tsc|oxlint [...]  a tool of the checkout
 */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { exitLike, runChild } from './child.js';
import { ensure, root } from './ensure.js';
import { BootstrapProblem, runEntry } from './errors.js';
import { tools } from './tools.js';

await runEntry(async () => {
  const [first, ...rest] = process.argv.slice(2);
  if (first === '--tool') {
    const [name, ...args] = rest;
    if (!Object.hasOwn(tools, name ?? ''))
      throw new BootstrapProblem(`there is no tool "${name ?? ''}": name one of ${Object.keys(tools).join(', ')}.`);
    const { node, env } = await ensure({ broker: false, dashboard: name === 'vitest' });
    exitLike(await runChild(node, [join(root, tools[name]), ...args], { env, cwd: root }));
  }
  const file = first && resolve(first);
  if (file && !existsSync(file))
    throw new BootstrapProblem(`there is no file ${file}: name a TypeScript program of this checkout.`);
  const { node, env, broker } = await ensure({ broker: true, dashboard: true });
  if (file) exitLike(await runChild(node, [file, ...rest], { env }));
  process.stdout.write(`Node 26: ${node}\nBroker: ${broker.binary ?? env.SERVICE_NATS_URL} (${broker.source})\n`);
});
