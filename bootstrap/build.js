/** A build that puts a folder in the place of its predecessor: a killed one leaves the old folder or none, and never half of one. */
import { spawn } from 'node:child_process';
import { mkdirSync, renameSync, rmSync } from 'node:fs';

const OUTPUT_CHARS_MAX = 16 * 1024;
const OUTPUT_LINES_MAX = 20;
/** A build takes a few seconds; on a machine that is busy with much else a minute was seen. */
const BUILD_MS_MAX = 10 * 60_000;

/**
 * @param build `fresh`: a folder beside `folder`, which the program fills; `finish` is called before that takes its place
 * @returns what went wrong, or undefined
 */
export async function buildFolder({ node, args, cwd, folder, fresh, finish = () => {} }) {
  try {
    mkdirSync(fresh, { recursive: true });
    const { code, output } = await run(node, args, cwd);
    if (code !== 0)
      return output.trim().split('\n').slice(0, OUTPUT_LINES_MAX).join('\n') || `the build ended with ${code}`;
    finish();
    rmSync(folder, { recursive: true, force: true });
    renameSync(fresh, folder);
    return undefined;
  } catch (error) {
    return error.message;
  } finally {
    try {
      rmSync(fresh, { recursive: true, force: true });
    } catch {
      // A checkout that cannot be written; what went wrong first has been told.
    }
  }
}

function run(node, args, cwd) {
  return new Promise((resolve, reject) => {
    const child = spawn(node, args, {
      cwd,
      // What a user's Node is told (other conditions, links as they stand) is not for what all starts are to find.
      env: { ...process.env, NODE_ENV: 'production', NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: BUILD_MS_MAX,
    });
    let output = '';
    const keep = (chunk) => {
      if (output.length < OUTPUT_CHARS_MAX) output += chunk;
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code: code ?? signal, output }));
  });
}
