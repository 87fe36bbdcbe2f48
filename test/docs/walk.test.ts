/** The ways through the code in docs/architecture.md lead through files and functions that exist, and only down; so do its folders. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const PAGE = readFileSync(join(ROOT, 'docs', 'architecture.md'), 'utf8');

interface Hop {
  readonly path: string;
  readonly name: string;
  /** What stands before it on its way: those that it goes on from, not what was asked in between. */
  readonly before: readonly string[];
}

/** By title: the hops of each way. */
const walks = (PAGE.split("## A stranger's walk\n")[1]?.split('\n## ')[0] ?? '')
  .split(/^### /m)
  .slice(1)
  .map((section) => ({ title: section.split('\n')[0] ?? '', hops: hopsOf(section) }));

function hopsOf(section: string): Hop[] {
  const down: string[] = [];
  let asked: string[] = [];
  return [...section.matchAll(/^( *)\d+\. `([^`]+)`, `([^`]+)`/gm)].map(([, indent = '', path = '', name = '']) => {
    const isAside = indent.length > 0;
    const before = isAside ? [...down, ...asked] : [...down];
    if (isAside) asked.push(path);
    else {
      down.push(path);
      asked = [];
    }
    return { path, name, before };
  });
}

const textOf = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const packageOf = (path: string): string => path.split('/src/')[0] ?? '';

/** All files of its own package that a file needs, types included, itself among them. */
function neededBy(path: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(path) || !existsSync(join(ROOT, path))) return seen;
  seen.add(path);
  for (const [, specifier = ''] of textOf(path).matchAll(/\bfrom '(\.[^']+)'/g))
    neededBy(resolve('/', dirname(path), specifier).slice(1), seen);
  return seen;
}

/** All packages that a package needs, by their folders. */
function packagesNeededBy(folder: string, seen = new Set<string>()): ReadonlySet<string> {
  const { dependencies = {} } = JSON.parse(textOf(`${folder}/package.json`)) as {
    dependencies?: Record<string, string>;
  };
  for (const name of Object.keys(dependencies).filter((each) => each.startsWith('@penstock/'))) {
    const short = name.slice('@penstock/'.length);
    const found = [`libs/${short}`, `services/${short}`].find((each) => existsSync(join(ROOT, each)));
    if (found === undefined || seen.has(found)) continue;
    seen.add(found);
    packagesNeededBy(found, seen);
  }
  return seen;
}

function isStepBack(from: string, to: string): boolean {
  return packageOf(from) === packageOf(to)
    ? neededBy(to).has(from)
    : packagesNeededBy(packageOf(to)).has(packageOf(from));
}

/** A function, a method, a constant or a member of an interface. */
function declares(path: string, name: string): boolean {
  const words = String.raw`(?:export |default |async |static |readonly |function\*? |const |class |\*)*`;
  return new RegExp(String.raw`^\s*${words}${name}\b\s*[(<=:]`, 'm').test(textOf(path));
}

describe("a stranger's walk", () => {
  it('has five ways of at least six hops', () => {
    expect(walks.map(({ hops }) => hops.length >= 6)).toEqual([true, true, true, true, true]);
  });

  it.each(walks)('$title: every file exists and has its function', ({ hops }) => {
    for (const { path, name } of hops) {
      expect(existsSync(join(ROOT, path)), path).toBe(true);
      expect(declares(path, name), `${path} has no ${name}`).toBe(true);
    }
  });

  it.each(walks)('$title: no hop leads back to what needs it', ({ hops }) => {
    for (const { path, before } of hops)
      expect(
        before.filter((earlier) => isStepBack(earlier, path)),
        `${path} needs a file before it`,
      ).toEqual([]);
  });
});

describe('the folders', () => {
  it('stand in docs/architecture.md as bootstrap/layers.json has them', () => {
    const layers = JSON.parse(textOf('bootstrap/layers.json')) as Record<string, (string | string[])[]>;
    for (const [path, order] of Object.entries(layers)) {
      const shown = order.map((layer) => {
        const names = [layer].flat().map((name) => `\`${name}\``);
        return typeof layer === 'string' ? names[0] : `(${names.join(', ')})`;
      });
      expect(PAGE).toContain(`| \`${path}\` | ${shown.join(', ')} |`);
    }
  });
});
