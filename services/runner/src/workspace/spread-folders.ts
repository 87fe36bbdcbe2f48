/**
 * A hint to ext4 (and what it comes from): what is made in this folder has nothing to do with each other. It then begins each folder in it
 * in another part of the disk. In one part a new file is looked for a place behind all that were removed there in the last
 * minutes, where the file system has no journal: that is most of what a workspace costs (docs/adr/0072-files-on-threads.md).
 */
import { execFile } from 'node:child_process';
import { statfs } from 'node:fs/promises';
import { promisify } from 'node:util';

/** Of ext2, ext3 and ext4. */
const EXT = 0xef53;
const TELL_MS_MAX = 5_000;
const run = promisify(execFile);

/** Whether it was told. Where there is another file system, no `chattr` or not the right to it, all is as it would be without. */
export async function spreadFolders(folder: string): Promise<boolean> {
  try {
    const { type } = await statfs(folder);
    if (type !== EXT) return false;
    await run('chattr', ['+T', '--', folder], { timeout: TELL_MS_MAX });
    return true;
  } catch {
    return false;
  }
}
