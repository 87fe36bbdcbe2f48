import { silentLog } from '@penstock/telemetry/log';
import { expect, it } from 'vitest';
import { BackupDesk } from '../src/backup/backup-desk.ts';
import { makeEmptyFolder } from '../src/backup/backup-files.ts';
import type { BackupSettings } from '../src/backup/make-backup.ts';

it('a backup whose thread cannot be started is not told as one that is being made', () => {
  const desk = new BackupDesk(
    { no: () => 'thread takes this' } as unknown as BackupSettings,
    { servers: '' },
    silentLog,
  );
  expect(() => desk.begin('/backup')).toThrow('could not be cloned');
  expect(desk.last()).toBe(null);
});

it.skipIf(process.platform !== 'linux')(
  'a folder where the file system makes none is refused: a backup that went on looking would keep every other from being made, and the server from ending',
  async () => {
    await expect(makeEmptyFolder('/proc/penstock/monday')).rejects.toThrow('cannot be made');
  },
);
