/** The folder of the embedded broker's store: streams lie in the folder of their account, which earlier releases had no name for. */
import { rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CORE_ACCOUNT } from '@penstock/bus';

/** Where nats-server keeps what belongs to nobody's account. */
const NO_ACCOUNT = '$G';

/** Before the broker starts. Throws where it cannot be told which of two are the streams. */
export async function adoptNamelessStore(storeDir: string): Promise<void> {
  const [earlier, own] = [NO_ACCOUNT, CORE_ACCOUNT].map((account) => join(storeDir, 'jetstream', account)) as [
    string,
    string,
  ];
  if (!(await isThere(earlier))) return;
  if (await isThere(own))
    throw new Error(
      `the broker's store has streams twice, in ${earlier}, where an earlier release keeps them, and in ${own}: move away the folder whose runs are not wanted, then start again`,
    );
  await rename(earlier, own);
}

async function isThere(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return false;
      throw error;
    },
  );
}
