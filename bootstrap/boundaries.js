/**
 * The boundary check of `npm test`: which module may import which, and what the pure libraries may touch.
 *
 *   1. A package imports only packages that its own package.json lists (its tests also what the root lists for development).
 *   2. It imports another workspace only by its name and an exported path, and no file outside its own folder.
 *   3. test/ at the root sits above all packages: it may import any workspace and what a workspace lists.
 *   4. The sources of libs/pipeline and libs/run are pure: no `node:` module but for its types, no package that does I/O, no
 *     clock, no randomness, no timer. Time and chance come in as data, or runs could not be replayed.
 *   5. Folders have a direction (checks/folder-graph.js), and the packages of layers.json the one that stands there.
 *   6. Titles of tests are sentences (checks/test-titles.js), labels of invariants are unique (checks/labels.js), and the lockfile
 *     has every package that it names (checks/lock-file.js).
 *
 * It reads text, not syntax trees: comments and strings are blanked first, and an import is what looks like one.
 */
import { existsSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, resolve, sep } from 'node:path';
import { checkFolders } from './checks/folder-graph.js';
import { checkLabels } from './checks/labels.js';
import { checkLockFile } from './checks/lock-file.js';
import {
  codeOnly,
  importsOf,
  lineAt,
  pathBelow,
  readManifest,
  readWorkspaces,
  sourceFiles,
} from './checks/source-files.js';
import { checkTitles } from './checks/test-titles.js';

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
/** Sources beside the workspaces, whose folders have a direction too. */
const ROOT_FOLDERS = ['bootstrap', 'deploy', 'test'];
/** Folders of tests that are programs of their own. */
const TEST_FOLDERS = ['test/simulation'];

/** @returns lines `path:line: what is wrong`, none where all is well. */
export function checkBoundaries(root) {
  return [...checkImports(root), ...folderReport(root).findings, ...checkWords(root), ...checkLockFile(root)];
}

/** @returns a line for each package that has folders: how they import each other, from the top down. */
export function folderLines(root) {
  return folderReport(root).lines;
}

function checkImports(root) {
  const workspaces = readWorkspaces(root);
  const rootManifest = readManifest(root);
  const findings = [];
  for (const owner of [...workspaces.values(), rootTests(root, workspaces, rootManifest)]) {
    for (const file of sourceFiles(owner.folder)) checkFile({ root, file, owner, workspaces, rootManifest, findings });
  }
  return findings;
}

function folderReport(root) {
  const packages = [...readWorkspaces(root).values()].map(({ path }) => ({ path, source: `${path}/src` }));
  const others = [...ROOT_FOLDERS, ...TEST_FOLDERS].map((path) => ({ path, source: path }));
  return checkFolders(root, [...packages, ...others], readLayers(root));
}

/** A checkout without the table has no order of its folders; the directions are looked at all the same. */
function readLayers(root) {
  const file = join(root, 'bootstrap', 'layers.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
}

function checkWords(root) {
  const folders = [
    ...[...readWorkspaces(root).values()].map(({ folder }) => folder),
    ...ROOT_FOLDERS.map((each) => join(root, each)),
  ];
  const files = folders
    .flatMap(sourceFiles)
    .map((file) => ({ path: pathBelow(root, file), text: readFileSync(file, 'utf8') }));
  const tests = files.filter(({ text }) => / from 'vitest';$/m.test(text));
  return [...tests.flatMap(({ path, text }) => checkTitles(path, text)), ...checkLabels(files)];
}

function checkFile({ root, file, owner, workspaces, rootManifest, findings }) {
  const path = pathBelow(root, file);
  const inSource = path.startsWith(`${owner.path}/src/`);
  const text = codeOnly(readFileSync(file, 'utf8'));
  const report = (index, message) => findings.push(`${path}:${lineAt(text, index)}: ${message}`);
  const isPure = inSource && PURE.includes(owner.path);
  const place = { file, owner, workspaces, rootManifest, inSource, isPure };
  for (const { specifier, isType, index } of importsOf(text)) {
    const problem = importProblem({ specifier, isType, ...place });
    if (problem) report(index, problem);
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

function rootTests(root, workspaces, rootManifest) {
  const listed = new Set([
    ...rootManifest.listed,
    ...workspaces.keys(),
    ...[...workspaces.values()].flatMap((each) => [...each.listed]),
  ]);
  return { name: rootManifest.name, path: 'test', folder: join(root, 'test'), listed, exports: new Set() };
}
