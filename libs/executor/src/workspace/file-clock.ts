/** Whose clock the times of files are of. */
import { statfsSync } from 'node:fs';

/** File systems that take the time from the machine's own kernel, as `statfs` tells them: ext2 to 4, XFS, Btrfs, tmpfs, ramfs, overlay, F2FS, bcachefs, ZFS. */
const OF_THIS_MACHINE: ReadonlySet<number> = new Set([
  0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x858458f6, 0x794c7630, 0xf2f52010, 0xca451a4e, 0x2fc12fc1,
]);

/** False also where nobody knows: another machine's clock, of a network disk, may be behind this one's by any time. */
export function hasClockOfThisMachine(folder: string): boolean {
  try {
    return isOfThisMachine(statfsSync(folder).type);
  } catch {
    return false;
  }
}

/** `type`: of `statfs`, where a number of 32 bits may have a sign. */
export function isOfThisMachine(type: number): boolean {
  return OF_THIS_MACHINE.has(type >>> 0);
}
