/** Builds the dashboard; for the building of an image, which is refused without it. */
import { ensureDashboard } from '../../bootstrap/dashboard.js';
import { root } from '../../bootstrap/ensure.js';

const say = (line) => process.stderr.write(`${line}\n`);
if (!(await ensureDashboard({ root, node: process.execPath, say }))) process.exitCode = 1;
