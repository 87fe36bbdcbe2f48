/** What the boundary check finds in small checkouts: imports, pure libraries, folders, titles of tests, labels of invariants. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Checkout } from './checkout.ts';

let checkout: Checkout;
beforeEach(() => {
  checkout = new Checkout();
  checkout.write(
    'package.json',
    JSON.stringify({ name: 'sandbox', type: 'module', workspaces: ['libs/*'], devDependencies: { vitest: '1' } }),
  );
  checkout.write('bootstrap/layers.json', '{}');
  checkout.write(
    'check.js',
    "import { checkBoundaries, folderLines } from './bootstrap/boundaries.js';\nconst root = import.meta.dirname;\nconsole.log(JSON.stringify({ findings: checkBoundaries(root), lines: folderLines(root) }));\n",
  );
});
afterEach(() => checkout.remove());

const manifest = (name: string, dependencies: object = {}): string =>
  JSON.stringify({ name, exports: { '.': './src/index.ts' }, dependencies });

async function check(): Promise<{ findings: string[]; lines: string[] }> {
  const outcome = await checkout.run('check.js', []);
  expect(outcome.code, outcome.stderr).toBe(0);
  return JSON.parse(outcome.stdout) as { findings: string[]; lines: string[] };
}

/** A package `libs/a` with these files below src; each is the list of what it imports. */
function sources(files: Record<string, string[]>): void {
  checkout.write('libs/a/package.json', manifest('@x/a'));
  for (const [path, imports] of Object.entries(files))
    checkout.write(`libs/a/src/${path}`, imports.map((each) => `import type { T } from '${each}';\n`).join(''));
}

const layers = (table: object): string => checkout.write('bootstrap/layers.json', JSON.stringify(table));

describe('imports', () => {
  it('a package imports what it lists, by name, and its tests what the root has for development', async () => {
    checkout.write('libs/a/package.json', manifest('@x/a', { '@x/b': '1' }));
    checkout.write('libs/b/package.json', manifest('@x/b'));
    checkout.write(
      'libs/a/src/index.ts',
      "import { b } from '@x/b';\nimport fs from 'node:fs';\nimport './other.ts';\n// import 'not-listed';\nconst text = `import 'not-listed' ${b}` + \"import 'not-listed'\";\n",
    );
    checkout.write('libs/a/test/a.test.ts', "import { test } from 'vitest';\nimport { a } from '../src/index.ts';\n");
    checkout.write(
      'test/e2e/x.test.ts',
      "import { a } from '@x/a';\nimport { b } from '@x/b';\nimport '../support/x.ts';\n",
    );
    expect((await check()).findings).toEqual([]);
  });

  it('an unlisted package, a path out of the package and an unexported path are refused, with their place', async () => {
    checkout.write('libs/a/package.json', manifest('@x/a', { '@x/b': '1' }));
    checkout.write('libs/b/package.json', manifest('@x/b'));
    checkout.write(
      'libs/a/src/index.ts',
      "import type {\n  T,\n} from 'left-pad';\nexport * from '../../b/src/index.ts';\nimport '@x/b/src/inner.ts';\nconst late = await import('@x/c');\nimport { test } from 'vitest';\n",
    );
    checkout.write('test/x.test.ts', "import '../libs/a/src/index.ts';\n");
    expect((await check()).findings).toEqual([
      'libs/a/src/index.ts:1: imports left-pad, which libs/a/package.json does not list',
      'libs/a/src/index.ts:4: imports ../../b/src/index.ts, which is outside libs/a: import the package by its name',
      'libs/a/src/index.ts:5: imports @x/b/src/inner.ts, which @x/b does not export',
      'libs/a/src/index.ts:6: imports @x/c, which libs/a/package.json does not list',
      'libs/a/src/index.ts:7: imports vitest, which libs/a/package.json does not list',
      'test/x.test.ts:1: imports ../libs/a/src/index.ts, which is outside test: import the package by its name',
    ]);
  });

  it('the pure libraries have no clock, chance, timer or I/O in their sources, and may in their tests', async () => {
    const impure =
      "import fs from 'node:fs';\nimport type { Buffer } from 'node:buffer';\nconst now = Date.now();\nconst today = new Date();\nconst then = new Date(now);\nconst chance = Math.random();\nsetTimeout(() => {}, 1);\n";
    checkout.write('libs/run/package.json', manifest('@x/run', { execa: '1' }));
    checkout.write('libs/run/src/index.ts', `${impure}import { execa } from 'execa';\n`);
    checkout.write('libs/run/test/a.test.ts', impure);
    const found = (await check()).findings;
    expect(
      found.map((line) =>
        line.replace(/^libs\/run\/src\/index.ts:(\d+): libs\/run is pure and may not (import|use) /, '$1 '),
      ),
    ).toEqual([
      '1 node:fs',
      '8 execa',
      '3 Date.now: take it as data',
      '4 new Date without an argument: take it as data',
      '6 Math.random: take it as data',
      '7 a timer: take it as data',
    ]);
  });
});

describe('folders', () => {
  it('a circle of folders is refused with an import for each hop, and types count', async () => {
    sources({ 'up/one.ts': ['../down/two.ts'], 'up/three.ts': [], 'down/two.ts': ['../up/three.ts'] });
    expect((await check()).findings).toEqual([
      'libs/a/src: down -> up -> down is a circle (libs/a/src/down/two.ts imports libs/a/src/up/three.ts; libs/a/src/up/one.ts imports libs/a/src/down/two.ts): let one of them not need the next',
    ]);
  });

  it('a folder and a file beside it make no circle either, at any depth', async () => {
    sources({
      'in/port.ts': ['./sqlite/store.ts'],
      'in/sqlite/store.ts': ['../port.ts'],
      'index.ts': ['./in/port.ts'],
    });
    expect((await check()).findings).toEqual([expect.stringMatching(/^libs\/a\/src\/in: .* is a circle /)]);
  });

  it('the tests at the root have a direction too', async () => {
    checkout.write('test/one/a.ts', "import '../two/b.ts';\n");
    checkout.write('test/two/b.ts', "import '../one/c.ts';\n");
    checkout.write('test/one/c.ts', '');
    expect((await check()).findings).toEqual([expect.stringMatching(/^test: one -> two -> one is a circle /)]);
  });

  it('a package in the table imports downward only, and folders of one line do not know each other', async () => {
    layers({ 'libs/a': [['top', 'beside'], 'low'] });
    sources({
      'index.ts': ['./top/t.ts', './low/l.ts'],
      'top/t.ts': ['../low/l.ts'],
      'beside/b.ts': ['../top/t.ts'],
      'low/l.ts': [],
      'low/m.ts': ['../beside/b.ts'],
    });
    const [circle, ...found] = (await check()).findings;
    expect(circle).toContain('is a circle');
    expect(found).toEqual([
      'libs/a/src/beside/b.ts: imports libs/a/src/top/t.ts, and beside does not stand above top in bootstrap/layers.json',
      'libs/a/src/low/m.ts: imports libs/a/src/beside/b.ts, and low does not stand above beside in bootstrap/layers.json',
    ]);
  });

  it('of a package in the table each folder has a place, no folder needs a file above it, and no place is left over', async () => {
    layers({ 'libs/a': ['top'], 'libs/gone': ['x'] });
    sources({ 'top/t.ts': ['../port.ts'], 'port.ts': [], 'new/n.ts': ['../top/t.ts'] });
    expect((await check()).findings).toEqual([
      'libs/a/src/new: has no place in bootstrap/layers.json: give it one, there and in docs/architecture.md',
      'libs/a/src/top/t.ts: imports libs/a/src/port.ts, and top does not stand above port.ts in bootstrap/layers.json',
      'libs/gone: stands in layers.json and is no package',
    ]);
  });

  it('the graph is shown from the top down, without the arrows that follow from others', async () => {
    sources({ 'top/t.ts': ['../low/l.ts', '../mid/m.ts'], 'mid/m.ts': ['../low/l.ts'], 'low/l.ts': [] });
    expect((await check()).lines).toEqual(['libs/a: top -> mid; mid -> low']);
  });
});

describe('titles of tests', () => {
  const titled = (...titles: string[]): string =>
    checkout.write(
      'test/a.test.ts',
      `import { expect, it } from 'vitest';\n${titles.map((title) => `it(${JSON.stringify(title)}, () => {});\n`).join('')}`,
    );

  it('a title without a verb is refused, also behind a table of cases', async () => {
    checkout.write(
      'test/a.test.ts',
      "import { it } from 'vitest';\nit('an unknown name', () => {});\nit.each([\n  ['a (b', 1],\n])('%s', () => {});\nit.skipIf(f('is'))(\n  'a list of the others',\n  () => {},\n);\n",
    );
    expect((await check()).findings).toEqual([
      'test/a.test.ts:2: the title "an unknown name" is no sentence: say who does what, with a verb',
      'test/a.test.ts:3: the title "%s" is no sentence: say who does what, with a verb',
      'test/a.test.ts:6: the title "a list of the others" is no sentence: say who does what, with a verb',
    ]);
  });

  it('a title cites rules of the protocols, and nothing that no document has', async () => {
    titled('P4, P12: a stage waits', 'S12: a stage waits', 'a stage waits (P1, D2)', 'a stage waits (PLACE-1)');
    expect((await check()).findings).toEqual([
      'test/a.test.ts:3: the title "S12: a stage waits" cites S12, which nothing defines: cite a rule or a label',
      'test/a.test.ts:4: the title "a stage waits (P1, D2)" cites D2, which nothing defines: cite a rule or a label',
    ]);
  });

  it('sentences of many forms are taken', async () => {
    titled(
      'refuses links',
      'an empty file is refused',
      'P4: stages run in order',
      '%s matches %s',
      'two owners decide at once',
      "the API key's sessions die with it",
      'of many pushes few packs stay',
      'a stage waited for its place',
    );
    expect((await check()).findings).toEqual([]);
  });
});

describe('labels of invariants', () => {
  it('a label has its prefix, one definition, and no citation without one', async () => {
    const header = (text: string): string => `/**\n * A module.\n *\n${text} */\nexport {};\n`;
    checkout.write('test/one.ts', header(' * ONE-1. It holds.\n *   ONE-2 It holds too.\n * X1. It holds as well.\n'));
    checkout.write(
      'test/two.ts',
      `${header(' * ONE-1. Twice.\n')}// ONE-2, ONE-3 and SHA-256.\nconst text = 'ONE-4';\n`,
    );
    expect((await check()).findings).toEqual([
      'test/one.ts:6: the label X1 says not whose it is: write a prefix of the module in capitals, a hyphen and a number',
      'test/two.ts:4: the label ONE-1 stands at test/one.ts:4 too: give it another prefix',
      'test/two.ts:7: cites ONE-3, which no header defines',
    ]);
  });
});

it('a lockfile without a package that it names is refused', async () => {
  checkout.write(
    'package-lock.json',
    JSON.stringify({
      packages: {
        '': {},
        'node_modules/tool': {
          version: '1.0.0',
          optionalDependencies: { 'tool-linux': '1.0.0', 'tool-windows': '1.0.0' },
        },
        'node_modules/tool/node_modules/tool-linux': { version: '1.0.0' },
      },
    }),
  );
  expect((await check()).findings).toEqual([
    'package-lock.json: node_modules/tool 1.0.0 needs tool-windows, which the lockfile lacks: take a version of which the registry has every platform',
  ]);
});
