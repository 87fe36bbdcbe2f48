/**
 * The lockfile is whole: `npm ci` refuses one that lacks a package which another one names, also one for a system that is not
 * this one. npm writes such a lockfile without a word where the registry does not have all platforms of a version yet.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** @returns lines that say what is missing. */
export function checkLockFile(root) {
  const file = join(root, 'package-lock.json');
  if (!existsSync(file)) return [];
  const packages = JSON.parse(readFileSync(file, 'utf8')).packages ?? {};
  const present = new Set(Object.keys(packages).map((path) => path.split('node_modules/').at(-1)));
  return Object.entries(packages).flatMap(([path, { version, optionalDependencies }]) => {
    const missing = Object.keys(optionalDependencies ?? {}).filter((name) => !present.has(name));
    return missing.length === 0
      ? []
      : [
          `package-lock.json: ${path} ${version ?? ''} needs ${missing.join(', ')}, which the lockfile lacks: take a version of which the registry has every platform`,
        ];
  });
}
