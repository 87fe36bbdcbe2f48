/** The extensions that come along (`extensions/` at the root), packed as anybody would pack them. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MANIFEST_NAME, packFolder } from '@penstock/extension';
import type { BuiltInPackage } from './start.ts';

const FOLDER = fileURLToPath(new URL('../../../extensions', import.meta.url));

/** Empty where this installation has none. Packing gives the same bytes each time, so that publishing again changes nothing. */
export async function builtInExtensions(): Promise<BuiltInPackage[]> {
  if (!existsSync(FOLDER)) return [];
  const folders = readdirSync(FOLDER, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .flatMap((category) => readdirSync(join(FOLDER, category.name)).map((name) => join(category.name, name)))
    .filter((name) => existsSync(join(FOLDER, name, MANIFEST_NAME)))
    .toSorted();
  return await Promise.all(
    folders.map(async (name) => ({ name, bytes: (await packFolder(join(FOLDER, name))).bytes })),
  );
}
