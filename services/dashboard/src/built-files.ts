/**
 * The built dashboard, read once into memory: a server goes on with the one that it began with while a newer one is being built.
 * `bootstrap/dashboard.js` makes the folder.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';

export interface BuiltFile {
  readonly type: string;
  readonly content: Buffer;
  /** By brotli; made when it is asked for first. */
  compressed(): Promise<Buffer>;
}

export interface BuiltFiles {
  readonly index: BuiltFile;
  /** By their names below `assets/`, which hold a hash of the content. */
  readonly assets: ReadonlyMap<string, BuiltFile>;
}

export const BUILT_FOLDER = fileURLToPath(new URL('../dist', import.meta.url));

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};
/** Good enough for text that is sent again and again, and a tenth of a second of work. */
const BROTLI_QUALITY = 9;

const compress = promisify(brotliCompress);

/** Null where it has not been built. */
export function readBuiltFiles(folder = BUILT_FOLDER): BuiltFiles | null {
  if (!existsSync(join(folder, 'index.html'))) return null;
  const names = readdirSync(join(folder, 'assets'));
  return {
    index: fileOf(join(folder, 'index.html')),
    assets: new Map(names.map((name) => [name, fileOf(join(folder, 'assets', name))])),
  };
}

function fileOf(path: string): BuiltFile {
  const content = readFileSync(path);
  let compressed: Promise<Buffer> | undefined;
  return {
    type: TYPES[extname(path)] ?? 'application/octet-stream',
    content,
    compressed: () =>
      (compressed ??= compress(content, { params: { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY } })),
  };
}
