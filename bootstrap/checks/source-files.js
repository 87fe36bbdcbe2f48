/** What the checks of `npm test` read: the workspaces, their source files, and what those import. Text, not syntax trees. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';

const IMPORT =
  /(?<![\w.$])(?:import|export)\s+(type\s+)?(?:[\w$*\s{},]+?\s+from\s*)?(['"])([^'"\n]+)\2|(?<![\w.$])(?:import|require)\s*\(\s*(['"])([^'"\n]+)\4/g;

const NOT_SOURCES = new Set(['node_modules', 'dist', 'fixtures']);

/** By name: each workspace that the root's package.json lists, with its path, folder, listed packages and exported paths. */
export function readWorkspaces(root) {
  const folders = readManifest(root).patterns.flatMap((pattern) =>
    pattern.endsWith('/*')
      ? listFolder(join(root, pattern.slice(0, -2))).map((entry) => `${pattern.slice(0, -2)}/${entry.name}`)
      : [pattern],
  );
  const present = folders.filter((path) => existsSync(join(root, path, 'package.json')));
  return new Map(
    present.map((path) => {
      const manifest = readManifest(join(root, path));
      return [manifest.name, { ...manifest, path, folder: join(root, path) }];
    }),
  );
}

export function readManifest(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const { dependencies, devDependencies, peerDependencies, optionalDependencies } = manifest;
  return {
    name: manifest.name,
    patterns: manifest.workspaces ?? [],
    listed: new Set(Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies, ...optionalDependencies })),
    exports: new Set(typeof manifest.exports === 'string' ? ['.'] : Object.keys(manifest.exports ?? {})),
  };
}

/** The .ts, .tsx, .js and .mjs files below a folder, none of what is installed, built or a fixture; a folder that is not there has none. */
export function sourceFiles(folder) {
  return listFolder(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return NOT_SOURCES.has(entry.name) ? [] : sourceFiles(path);
    return /\.(tsx?|js|mjs)$/.test(entry.name) ? [path] : [];
  });
}

function listFolder(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // A package without that folder.
  }
}

/** @returns `{ specifier, isType, index }` for each import, export from, dynamic import and require of a text of `codeOnly`. */
export function importsOf(code) {
  return [...code.matchAll(IMPORT)].map((match) => ({
    specifier: match[3] ?? match[5],
    isType: Boolean(match[1]),
    index: match.index,
  }));
}

/** The text with comments and all strings blanked but those that name a module; every place stays where it is. */
export function codeOnly(text) {
  const token = /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\[\s\S]|[^`\\])*`/g;
  const blank = (part) => part.replace(/[^\n]/g, ' ');
  return text.replace(token, (part, at) => {
    if (part.startsWith('/')) return blank(part);
    // What a template computes stays visible; only its own text goes.
    if (part.startsWith('`')) return part.replace(/(^|\})(?:\\[\s\S]|[^\\$]|\$(?!\{))*?(\$\{|$)/g, blank);
    return /(?:\bfrom|\bimport|\b(?:import|require)\s*\()\s*$/.test(text.slice(Math.max(0, at - 40), at))
      ? part
      : blank(part);
  });
}

/** A file's path below the root, with slashes on every platform. */
export function pathBelow(root, file) {
  return relative(root, file).split(sep).join('/');
}

export function lineAt(text, index) {
  return text.slice(0, index).split('\n').length;
}
