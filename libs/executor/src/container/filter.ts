/**
 * The filter of a container's network (`network/rules.ts`), put into its network namespace from outside while its first process
 * waits. It needs nft and nsenter, and the right to enter: root's, or that of the owner of a rootless container.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { promisify } from 'node:util';
import { networkRules } from '../network/rules.ts';

const FILTER_MS_MAX = 10_000;
/** Where names are resolved on this machine: what engines hand on to containers. */
const RESOLVER_FILES = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf'];
const run = promisify(execFile);

/**
 * `pid`: of the container's first process. `owning`: the words by which a command runs as the owner of the network's namespace, where that
 * is not the container's own user namespace. Rejects where there is no filter then.
 */
export async function filterNetwork(
  pid: number,
  { denied, isPublic, owning }: { denied: readonly string[]; isPublic: boolean; owning: readonly string[] | undefined },
): Promise<void> {
  const isWithin = owning !== undefined || process.getuid?.() === 0;
  const names = isWithin ? ['--net'] : ['--user', '--preserve-credentials', '--net'];
  const rules = networkRules(denied, isPublic, resolvers());
  const [file = '', ...words] = [...(owning ?? []), 'nsenter', `--target=${pid}`, ...names, '--', 'nft', rules];
  await run(file, words, { timeout: FILTER_MS_MAX });
}

function resolvers(): string[] {
  return RESOLVER_FILES.flatMap((file) => nameserversIn(file));
}

function nameserversIn(file: string): string[] {
  try {
    return [...readFileSync(file, 'utf8').matchAll(/^nameserver\s+(\S+)/gm)].flatMap(([, address = '']) =>
      isIPv4(address) && !address.startsWith('127.') ? [address] : [],
    );
  } catch {
    return [];
  }
}
