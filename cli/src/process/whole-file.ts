/** Files that a command leaves for its user: each is there as a whole or not at all, also where the disk is full in the middle. */
import { open, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';

/** Throws EEXIST where something is there already. */
export async function writeNew(path: string, content: string | Uint8Array, mode = 0o666): Promise<void> {
  const file = await open(path, 'wx', mode);
  try {
    await file.writeFile(content);
    await file.close();
  } catch (error) {
    // Half of it would be in the way of the next try.
    await file.close().catch(() => {});
    await rm(path, { force: true });
    throw error;
  }
}

/** In the place of a file that is there, which stays where this fails; a pipe or a device is no such place, and is written to. */
export async function replaceWhole(path: string, content: string | Uint8Array, mode?: number): Promise<void> {
  const there = await stat(path).catch(() => null);
  if (there?.isFile() === false) return await writeFile(path, content);
  const place = await realpath(path).catch(() => path);
  const incoming = `${place}.${process.pid}.new`;
  await rm(incoming, { force: true });
  await writeNew(incoming, content, mode);
  try {
    await rename(incoming, place);
  } catch (error) {
    await rm(incoming, { force: true });
    throw error;
  }
}
