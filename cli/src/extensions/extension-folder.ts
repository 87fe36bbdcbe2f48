/** Finds the extension that a command works on, a folder or a package, and says what is wrong with it in its author's terms. */
import { readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { inspectPackage, MANIFEST_NAME, packFolder, PackageRefused, type PackedFolder } from '@penstock/extension';
import { formatDiagnostics, parseManifest } from '@penstock/pipeline';
import { EXIT, FileError, RefusedFile } from '../process/errors.ts';
import { printableLines, printableText } from '../output/printable-text.ts';

/** `path` is a folder with an extension.yaml, or a package that was made of one. Throws FileError and RefusedFile. */
export async function readExtension(path: string, cwd: string, color: boolean): Promise<PackedFolder> {
  const place = resolve(cwd, path);
  const found = await stat(place).catch(() => undefined);
  if (found === undefined)
    throw new FileError(`there is no ${printableText(path)} here: name the folder of the extension`);
  try {
    if (!found.isDirectory()) return await readPackageFile(place);
    await checkManifest(place, path, color);
    return await packFolder(place);
  } catch (error) {
    if (error instanceof PackageRefused)
      throw new RefusedFile(`penstock: ${printableText(path)}: ${printableLines(error.message)}`, EXIT.failure);
    throw error;
  }
}

async function readPackageFile(place: string): Promise<PackedFolder> {
  const bytes = await readFile(place);
  return { ...(await inspectPackage(once(bytes))), bytes };
}

/** Shows problems with the lines of the file, which a package does not have at hand. */
async function checkManifest(folder: string, shown: string, color: boolean): Promise<void> {
  const text = await readFile(join(folder, MANIFEST_NAME), 'utf8').catch(() => undefined);
  if (text === undefined)
    throw new FileError(
      `${printableText(shown)} has no ${MANIFEST_NAME}: it is no extension; begin one with 'penstock extension init'`,
    );
  const parsed = parseManifest(text);
  if (!parsed.ok)
    throw new RefusedFile(
      formatDiagnostics(text, parsed.diagnostics, join(shown, MANIFEST_NAME), { color }).trimEnd(),
      EXIT.failure,
    );
}

export async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** Gives a size like `12.3 KiB`. */
export function readableSize(bytes: number): string {
  return bytes < 1024
    ? `${bytes} bytes`
    : bytes < 1024 * 1024
      ? `${(bytes / 1024).toFixed(1)} KiB`
      : `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
