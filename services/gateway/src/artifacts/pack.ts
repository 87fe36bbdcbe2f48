/** Files as one archive, made while it is sent: nothing of it lies on a disk. */
import type { KeptFile } from '@penstock/artifacts';
import { pack } from 'tar-stream';

/** The time of every entry: what is kept has none of its own. */
const NO_TIME = new Date(0);

export function packFiles(
  files: readonly KeptFile[],
  read: (file: KeptFile) => AsyncIterable<Uint8Array>,
): AsyncIterable<Uint8Array> {
  const archive = pack();
  void writeAll(archive, files, read).catch((error: unknown) => {
    archive.destroy(error instanceof Error ? error : new Error(String(error)));
  });
  return archive as unknown as AsyncIterable<Uint8Array>;
}

async function writeAll(
  archive: ReturnType<typeof pack>,
  files: readonly KeptFile[],
  read: (file: KeptFile) => AsyncIterable<Uint8Array>,
): Promise<void> {
  for (const file of files) {
    if (archive.destroyed) return;
    const { path, sizeBytes, executable } = file;
    await new Promise<void>((written, failed) => {
      const entry = archive.entry(
        { name: path, size: sizeBytes, mode: executable ? 0o755 : 0o644, mtime: NO_TIME },
        (error) => (error == null ? written() : failed(error)),
      );
      void (async () => {
        for await (const bytes of read(file)) {
          if (!entry.write(bytes))
            await new Promise<void>((drained) => {
              entry.once('drain', drained);
              entry.once('close', drained);
            });
          if (archive.destroyed) return;
        }
        entry.end(Buffer.alloc(0));
      })().catch(failed);
    });
  }
  archive.finalize();
}
