/** The thread in which a backup is made (`backup-desk.ts` is its other side): hashing gigabytes holds up nobody's requests there. */
import { parentPort, workerData } from 'node:worker_threads';
import { connectBus } from '@penstock/bus';
import { systemReason } from '@penstock/errors';
import type { BackupEnd, BackupOrder } from './backup-desk.ts';
import { makeBackup } from './make-backup.ts';

const { folder, settings, busAddress } = workerData as BackupOrder;
const tell = (end: BackupEnd): void => parentPort?.postMessage(end);

try {
  const bus = await connectBus({ ...busAddress, name: 'backup' });
  try {
    const { files, bytes, notes } = await makeBackup(folder, settings, bus);
    tell({ files, bytes, notes });
  } finally {
    await bus.close();
  }
} catch (error) {
  tell({ problem: systemReason(error), stack: error instanceof Error ? (error.stack ?? '') : '' });
}
