/**
 * The direction of folders: in every folder of a package's sources, the entries (files and folders) import each other in one
 * direction only, types included, so that the sources can be read from the top down and cut anywhere.
 *
 * A package in layers.json has an order of its folders besides: each line is a layer, from the top down, and imports only what
 * stands below; folders that share a line do not know each other. The files beside the folders stand above all of them, but for
 * those that the table names.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { codeOnly, importsOf, pathBelow, sourceFiles } from './source-files.js';

/**
 * @param layers by the path of a package: its layers, each the name of an entry or a list of names.
 * @returns `{ findings, lines }`: what is wrong, and for each package with folders a line that shows how they import each other.
 */
export function checkFolders(root, packages, layers) {
  const findings = [];
  const lines = [];
  for (const { path, source } of packages) {
    const imports = readImports(root, source);
    for (const [folder, graph] of entriesByFolder(imports, source)) {
      const cycle = findCycle(graph);
      if (cycle) findings.push(cycleFinding(folder, cycle, graph));
    }
    const graph = graphOf(imports, source);
    if (layers[path]) findings.push(...layerFindings(source, layers[path], graph));
    const line = graphLine(root, source, graph);
    if (line) lines.push(`${path}: ${line}`);
  }
  for (const path of Object.keys(layers))
    if (!packages.some((each) => each.path === path)) findings.push(`${path}: stands in layers.json and is no package`);
  return { findings, lines };
}

/** Each import inside a package's sources, as the paths of both files. */
function readImports(root, source) {
  return sourceFiles(join(root, source)).flatMap((file) =>
    importsOf(codeOnly(readFileSync(file, 'utf8')))
      .filter(({ specifier }) => specifier.startsWith('.'))
      .map(({ specifier }) => ({ from: pathBelow(root, file), to: pathBelow(root, resolve(dirname(file), specifier)) }))
      .filter(({ to }) => to.startsWith(`${source}/`)),
  );
}

/** For each folder the graph of its entries: by entry, the entries that it imports, each with one import that shows it. */
function entriesByFolder(imports, source) {
  const folders = new Set([source]);
  for (const { from } of imports)
    for (let folder = dirname(from); folder.length > source.length; folder = dirname(folder)) folders.add(folder);
  return [...folders].toSorted().map((folder) => [folder, graphOf(imports, folder)]);
}

function graphOf(imports, folder) {
  const entryOf = (path) => (path.startsWith(`${folder}/`) ? path.slice(folder.length + 1).split('/')[0] : undefined);
  const graph = new Map();
  for (const each of imports) {
    const from = entryOf(each.from);
    const to = entryOf(each.to);
    if (from === undefined || to === undefined || from === to) continue;
    const targets = graph.get(from) ?? new Map();
    graph.set(from, targets);
    if (!targets.has(to)) targets.set(to, each);
  }
  return graph;
}

/** @returns the entries of one cycle in order, or undefined. */
function findCycle(graph) {
  const done = new Set();
  const visit = (node, path) => {
    const at = path.indexOf(node);
    if (at >= 0) return path.slice(at);
    if (done.has(node)) return undefined;
    for (const target of graph.get(node)?.keys() ?? []) {
      const cycle = visit(target, [...path, node]);
      if (cycle) return cycle;
    }
    done.add(node);
    return undefined;
  };
  for (const node of graph.keys()) {
    const cycle = visit(node, []);
    if (cycle) return cycle;
  }
  return undefined;
}

function cycleFinding(folder, cycle, graph) {
  const hops = cycle.map((entry, index) => {
    const { from, to } = graph.get(entry).get(cycle[(index + 1) % cycle.length]);
    return `${from} imports ${to}`;
  });
  return `${folder}: ${[...cycle, cycle[0]].join(' -> ')} is a circle (${hops.join('; ')}): let one of them not need the next`;
}

function layerFindings(source, layers, graph) {
  const levels = new Map(layers.flatMap((layer, level) => [layer].flat().map((entry) => [entry, level])));
  const entries = new Set([...graph].flatMap(([from, targets]) => [from, ...targets.keys()]));
  const isFile = (entry) => /\.\w+$/.test(entry);
  const unplaced = [...entries]
    .filter((entry) => !levels.has(entry) && !isFile(entry))
    .map(
      (entry) =>
        `${source}/${entry}: has no place in bootstrap/layers.json: give it one, there and in docs/architecture.md`,
    );
  const wrong = [...graph].flatMap(([from, targets]) =>
    [...targets].flatMap(([to, shown]) => {
      const isDown = (levels.get(from) ?? -1) < (levels.get(to) ?? -1);
      if (isDown || (isFile(from) && !levels.has(from)) || (!levels.has(to) && !isFile(to))) return [];
      return [`${shown.from}: imports ${shown.to}, and ${from} does not stand above ${to} in bootstrap/layers.json`];
    }),
  );
  return [...unplaced, ...wrong];
}

/** From the top down: each folder with those it imports, less those that it also reaches by another of them. */
function graphLine(root, source, graph) {
  const isFolder = (entry) => !/\.\w+$/.test(entry) && existsSync(join(root, source, entry));
  const folders = new Map(
    [...graph].filter(([from]) => isFolder(from)).map(([from, to]) => [from, [...to.keys()].filter(isFolder)]),
  );
  const isReached = (from, to, seen = new Set()) =>
    (folders.get(from) ?? []).some((next) => next === to || (!seen.has(next) && isReached(next, to, seen.add(next))));
  const depth = (entry, seen = []) =>
    seen.includes(entry)
      ? 0
      : 1 + Math.max(0, ...(folders.get(entry) ?? []).map((next) => depth(next, [...seen, entry])));
  return [...folders]
    .filter(([, targets]) => targets.length > 0)
    .toSorted(([a], [b]) => depth(b) - depth(a) || a.localeCompare(b))
    .map(([from, targets]) => {
      const shown = targets.filter((to) => !targets.some((other) => other !== to && isReached(other, to)));
      return `${from} -> ${shown.toSorted().join(', ')}`;
    })
    .join('; ');
}
