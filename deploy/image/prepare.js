/** What the building of an image makes: the dashboard, and the pinned and verified nats-server where the argument says. */
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureBroker } from '../../bootstrap/broker.js';
import { ensureDashboard } from '../../bootstrap/dashboard.js';
import { root } from '../../bootstrap/ensure.js';

const [target] = process.argv.slice(2);
if (target === undefined) throw new Error('name the file that the broker goes to');
const { broker } = JSON.parse(readFileSync(join(root, 'bootstrap', 'pins.json'), 'utf8'));
const say = (line) => process.stderr.write(`${line}\n`);
const { binary } = await ensureBroker({ root, env: process.env, pins: broker, say });
copyFileSync(binary, target);
if (!(await ensureDashboard({ root, node: process.execPath, say }))) throw new Error('there is no dashboard');
