/**
 * The boundary check of `npm test`: which module may import which, and what the pure libraries may touch.
 *
 *   1. A package imports only packages that its own package.json lists (its tests also what the root lists for development).
 *   2. It imports another workspace only by its name and an exported path, and no file outside its own folder.
 *   3. test/ at the root sits above all packages: it may import any workspace and what a workspace lists.
 *   4. The sources of libs/pipeline and libs/run are pure: no `node:` module but for its types, no package that does I/O, no
 *     clock, no randomness, no timer. Time and chance come in as data, or runs could not be replayed.
 *
 * It reads text, not syntax trees: comments and strings are blanked first, and an import is what looks like one.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';

const PURE = ['libs/pipeline', 'libs/run'];
const IO_PACKAGES = /^(@nats-io\/|@fastify\/|fastify$|mercurius|mongodb|execa$|undici$|ws$|pino|p-queue$)/;
const IMPURE = [
  [/\bDate\.now\b/g, 'Date.now'],
  [/\bnew Date(\s*\(\s*\)|(?!\s*\())/g, 'new Date without an argument'],
  [/(?<!new\s)\bDate\(/g, 'Date()'],
  [/\bMath\.random\b/g, 'Math.random'],
  [/\b(setTimeout|setInterval|setImmediate)\b/g, 'a timer'],
  [/\bperformance\.now\b/g, 'performance.now'],
  [/\bcrypto\.(randomUUID|getRandomValues)\b/g, 'randomness'],
  [/(?<![.\w])fetch\s*\(/g, 'fetch'],
];
const IMPORT =
  /(?<![\w.$])(?:import|export)\s+(type\s+)?(?:[\w$*\s{},]+?\s+from\s*)?(['"])([^'"\n]+)\2|(?<![\w.$])(?:import|require)\s*\(\s*(['"])([^'"\n]+)\4/g;

/** @returns lines `path:line: what is wrong`, none where all is well. */
export function checkBoundaries(root) {
  const workspaces = readWorkspaces(root);
  const rootManifest = readManifest(root);
  const findings = [];
  for (const owner of [...workspaces.values(), rootTests(root, workspaces, rootManifest)]) {
    for (const file of sourceFiles(owner.folder)) checkFile({ root, file, owner, workspaces, rootManifest, findings });
  }
  return findings;
}

function checkFile({ root, file, owner, workspaces, rootManifest, findings }) {
  const path = relative(root, file).split(sep).join('/');
  const inSource = path.startsWith(`${owner.path}/src/`);
  const text = codeOnly(readFileSync(file, 'utf8'));
  const report = (index, message) => findings.push(`${path}:${text.slice(0, index).split('\n').length}: ${message}`);
  const isPure = inSource && PURE.includes(owner.path);
  for (const match of text.matchAll(IMPORT)) {
    const specifier = match[3] ?? match[5];
    const problem = importProblem({
      specifier,
      isType: Boolean(match[1]),
      file,
      owner,
      workspaces,
      rootManifest,
      inSource,
      isPure,
    });
    if (problem) report(match.index, problem);
  }
  if (!isPure) return;
  for (const [pattern, name] of IMPURE) {
    for (const match of text.matchAll(pattern))
      report(match.index, `${owner.path} is pure and may not use ${name}: take it as data`);
  }
}

function importProblem({ specifier, isType, file, owner, workspaces, rootManifest, inSource, isPure }) {
  if (specifier.startsWith('.')) {
    const target = resolve(dirname(file), specifier);
    return target.startsWith(owner.folder + sep)
      ? undefined
      : `imports ${specifier}, which is outside ${owner.path}: import the package by its name`;
  }
  if (specifier.startsWith('#')) return undefined;
  const isBuiltin = specifier.startsWith('node:') || builtinModules.includes(specifier);
  if (isBuiltin) return isPure && !isType ? `${owner.path} is pure and may not import ${specifier}` : undefined;
  const name = specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
  if (isPure && IO_PACKAGES.test(name)) return `${owner.path} is pure and may not import ${name}`;
  const workspace = workspaces.get(name);
  if (name !== owner.name && !owner.listed.has(name) && !(!inSource && rootManifest.listed.has(name))) {
    return `imports ${name}, which ${owner.path}/package.json does not list`;
  }
  if (workspace && !workspace.exports.has(`.${specifier.slice(name.length)}`))
    return `imports ${specifier}, which ${name} does not export`;
  return undefined;
}

function readWorkspaces(root) {
  const { patterns } = readManifest(root);
  const folders = patterns.flatMap((pattern) =>
    pattern.endsWith('/*')
      ? list(join(root, pattern.slice(0, -2))).map((entry) => `${pattern.slice(0, -2)}/${entry.name}`)
      : [pattern],
  );
  const present = folders.filter((path) => existsSync(join(root, path, 'package.json')));
  return new Map(
    present.map((path) => [
      readManifest(join(root, path)).name,
      { ...readManifest(join(root, path)), path, folder: join(root, path) },
    ]),
  );
}

function readManifest(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const { dependencies, devDependencies, peerDependencies, optionalDependencies } = manifest;
  return {
    name: manifest.name,
    patterns: manifest.workspaces ?? [],
    listed: new Set(Object.keys({ ...dependencies, ...devDependencies, ...peerDependencies, ...optionalDependencies })),
    exports: new Set(typeof manifest.exports === 'string' ? ['.'] : Object.keys(manifest.exports ?? {})),
  };
}

function rootTests(root, workspaces, rootManifest) {
  const listed = new Set([
    ...rootManifest.listed,
    ...workspaces.keys(),
    ...[...workspaces.values()].flatMap((each) => [...each.listed]),
  ]);
  return { name: rootManifest.name, path: 'test', folder: join(root, 'test'), listed, exports: new Set() };
}

function sourceFiles(folder) {
  return list(folder).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return entry.name === 'node_modules' || entry.name === 'fixtures' ? [] : sourceFiles(path);
    return /\.(ts|js|mjs)$/.test(entry.name) ? [path] : [];
  });
}

function list(folder) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // A package without that folder.
  }
}

/** The text with comments and all strings blanked but those that name a module; every place stays where it is. */
function codeOnly(text) {
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
