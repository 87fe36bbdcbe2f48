/** What the documents say of extensions is so: their pipelines are accepted, their manifests are ones, the schema has the keys of the code. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PACKAGE_LIMITS } from '@penstock/extension';
import {
  diagnosticLine,
  EXTENSION_CATEGORIES,
  parseManifest,
  parsePipeline,
  usesOf,
  type ResolvedExtension,
} from '@penstock/pipeline';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const page = read('docs/extensions.md');

const EXTENSIONS = EXTENSION_CATEGORIES.flatMap((category) =>
  existsSync(join(root, 'extensions', category))
    ? readdirSync(join(root, 'extensions', category)).map((name) => `${category}/${name}`)
    : [],
);

function blocksOf(path: string, kind: string): { readonly name: string; readonly text: string }[] {
  const text = read(path);
  return [...text.matchAll(new RegExp(`^\`\`\`${kind}\\n(.*?)^\`\`\`$`, 'gms'))].map((found) => ({
    name: `${path}:${text.slice(0, found.index).split('\n').length + 1}`,
    text: found[1] ?? '',
  }));
}

/** By id: those that come along, and those that the page shows. */
const manifests = new Map([
  ...EXTENSIONS.map((id) => [id, read(`extensions/${id}/extension.yaml`)] as const),
  ...blocksOf('docs/extensions.md', 'yaml manifest').map(
    ({ text }) => [/^id: (.*)$/m.exec(text)?.[1] ?? '', text] as const,
  ),
]);

function resolve(text: string): ResolvedExtension[] {
  return usesOf(text).flatMap((uses) => {
    const id = uses.split('@')[0] ?? '';
    const manifest = manifests.get(id);
    return manifest === undefined
      ? []
      : [{ uses, id, version: /^version: (.*)$/m.exec(manifest)?.[1] ?? '', hash: 'a'.repeat(64), manifest }];
  });
}

function problemsOf(text: string): string[] {
  const result = parsePipeline(text, { extensions: resolve(text) });
  return result.ok ? [] : result.diagnostics.map(diagnosticLine);
}

describe('docs/extensions.md and the readmes of the extensions', () => {
  const pipelines = [
    ...['docs/extensions.md', ...EXTENSIONS.map((id) => `extensions/${id}/README.md`)].flatMap((path) =>
      blocksOf(path, 'yaml'),
    ),
    ...readdirSync(join(root, 'docs/examples')).map((name) => ({
      name: `docs/examples/${name}`,
      text: read(`docs/examples/${name}`),
    })),
  ];

  it.each(pipelines)('the pipeline at $name is accepted', ({ text }) => {
    expect(problemsOf(text)).toEqual([]);
  });

  it.each(blocksOf('docs/extensions.md', 'yaml manifest'))('the manifest at $name is accepted', ({ text }) => {
    const result = parseManifest(text);
    expect(result.ok ? [] : result.diagnostics.map(diagnosticLine)).toEqual([]);
  });

  it.each(EXTENSIONS)('%s has a readme with all its inputs and outputs, and a changelog of its version', (id) => {
    const parsed = parseManifest(read(`extensions/${id}/extension.yaml`));
    const readme = read(`extensions/${id}/README.md`);
    for (const { name } of parsed.ok ? [...parsed.manifest.inputs, ...parsed.manifest.outputs] : [])
      expect(readme).toContain(`\`${name}\``);
    expect(read(`extensions/${id}/CHANGELOG.md`)).toContain(`## ${parsed.ok ? parsed.manifest.version : '?'}`);
    expect(page).toContain(`extensions/${id}/README.md`);
  });

  it('the examples use all of them', () => {
    const used = readdirSync(join(root, 'docs/examples'))
      .flatMap((name) => usesOf(read(`docs/examples/${name}`)))
      .map((uses) => uses.split('@')[0]);
    expect([...new Set(used)].toSorted()).toEqual(EXTENSIONS.toSorted());
  });

  it('links lead to files, and the bounds are those of the code', () => {
    const targets = [...page.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, target = '']) =>
      join(dirname('docs/extensions.md'), target),
    );
    expect(targets.filter((target) => !existsSync(join(root, target)))).toEqual([]);
    const {
      bytesMax,
      unpackedBytesMax,
      ratioMax,
      filesMax,
      depthMax,
      nameBytesMax,
      pathBytesMax,
      readmeBytesMax,
      changelogBytesMax,
    } = PACKAGE_LIMITS;
    expect(page).toContain(
      `${bytesMax / 2 ** 20} MiB packed, ${unpackedBytesMax / 2 ** 20} MiB unpacked, ${ratioMax} times its size, ${filesMax.toLocaleString('en')} entries`,
    );
    expect(page).toContain(
      `${depthMax} folders deep, names of ${nameBytesMax} bytes, paths of ${pathBytesMax.toLocaleString('en')}`,
    );
    expect(page).toContain(`the readme ${readmeBytesMax / 1024} KiB, the changelog ${changelogBytesMax / 1024} KiB`);
  });
});
