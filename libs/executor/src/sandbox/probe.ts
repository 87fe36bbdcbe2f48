/** Whether this machine can give a sandbox, and what it lacks: found out by running a stage in one. */
import { accessSync, closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HELPER_PATH } from '../process/helper.ts';
import { SandboxExecutor } from './executor.ts';
import type { SandboxLayout } from './launch.ts';
import { sandboxFilter } from './seccomp.ts';

const PROBE_MS_MAX = 20_000;

/** Programs, and what of them a distribution calls its package where that is not the same. */
const NEEDED: Readonly<Record<string, string>> = {
  bwrap: 'bubblewrap',
  slirp4netns: 'slirp4netns',
  nft: 'nftables',
  setpriv: 'util-linux',
  unshare: 'util-linux',
  mount: 'mount',
  mkfifo: 'coreutils',
};

/** Null: a stage has run in one. Else a phrase that says what is missing. */
export async function whySandboxLacks(users: SandboxLayout['users']): Promise<string | null> {
  if (process.platform !== 'linux') return 'it needs Linux';
  if (sandboxFilter() === undefined) return `there is no filter of system calls for ${process.arch}`;
  const missing = Object.keys(NEEDED).filter((program) => !isOnPath(program));
  if (missing.length > 0)
    return `there is no ${missing.join(', ')} here (packages ${[...new Set(missing.map((program) => NEEDED[program]))].join(', ')})`;
  return tunnelFault('/dev/net/tun') ?? (await probe(users));
}

/** Null: this user may open it. Without it the stack of a stage's network ends before it has begun, and says nothing. */
export function tunnelFault(device: string): string | null {
  try {
    closeSync(openSync(device, 'r+'));
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
      ? `there is no ${device} here (load the kernel module tun)`
      : `this user may not open ${device}, which the network of stages needs (as root: chmod 666 ${device})`;
  }
}

async function probe(users: SandboxLayout['users']): Promise<string | null> {
  const keep = mkdtempSync(join(tmpdir(), 'penstock-probe-'));
  const executor = new SandboxExecutor({ layout: { keep, hidden: [], paths: [], users }, warn: () => {} });
  try {
    const stage = executor.start(
      { helperKey: 'probe', commands: [{ script: 'true', bindings: {} }], env: {}, cwd: '/', timeoutMs: PROBE_MS_MAX },
      { write: () => {} },
    );
    const exit = await stage.ended;
    if (exit.kind === 'exit' && exit.code === 0) return null;
    return exit.kind === 'lost' ? exit.cause : `a stage in one ended as ${JSON.stringify(exit)}`;
  } finally {
    await executor.close();
    rmSync(keep, { recursive: true, force: true });
  }
}

function isOnPath(program: string): boolean {
  return HELPER_PATH.split(':').some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
