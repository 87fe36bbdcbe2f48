/** Makes archives that `packFolder` would not make. */
import { gzipSync } from 'node:zlib';
import { pack, type Header } from 'tar-stream';

export const MANIFEST = 'id: build/sample\nversion: 1.2.3\ndescription: For tests.\nrun: ./run.sh\n';

export interface ArchiveEntry extends Partial<Header> {
  readonly name: string;
  readonly content?: string | Buffer;
}

export async function tarOf(entries: readonly ArchiveEntry[]): Promise<Buffer> {
  const tar = pack();
  for (const { content, ...header } of entries)
    tar.entry({ mode: 0o644, mtime: new Date(0), ...header }, content ?? '');
  tar.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of tar) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks);
}

/** A sound manifest comes first, as long as no other is given. */
export async function archiveOf(entries: readonly ArchiveEntry[]): Promise<Buffer> {
  const manifest = entries.some(({ name }) => name === 'extension.yaml')
    ? []
    : [{ name: 'extension.yaml', content: MANIFEST }];
  return gzipSync(await tarOf([...manifest, ...entries]));
}

export async function* streamOf(bytes: Uint8Array, chunkBytes = 64 * 1024): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += chunkBytes) yield bytes.subarray(from, from + chunkBytes);
}
