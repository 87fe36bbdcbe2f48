/** Loaded first by every process and thread that is profiled: notes what it is, which its profile does not tell. */
import { writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { threadId } from 'node:worker_threads';

const folder = process.env['PENSTOCK_PROFILES'];
const [, program = '', command = ''] = process.argv;
const words = [basename(program), ...(/^[\w-]+$/.test(command) ? [command] : [])];
if (folder !== undefined)
  writeFileSync(join(folder, `${process.pid}.${threadId}.name`), words.join(' '), { flag: 'w' });
