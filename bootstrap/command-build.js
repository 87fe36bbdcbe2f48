/**
 * Puts the sources of some commands together, by the vite that builds the dashboard. A program of its own, run by Node 26:
 * `command-build.js <checkout> <folder> <command>…`. What the folder then has is described in command.js.
 */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'vite';
import { PLATFORM, stateOf } from './command.js';

const [root, folder, ...commands] = process.argv.slice(2);
const commandList = join(root, 'cli', 'src', 'commands.ts');
const lockfile = join(root, 'package-lock.json');
/** Ours, and packages that are many files and that every run loads; others are loaded as ever. */
const IS_INSIDE = /^(?:@penstock\/|\.|\/|(?:yaml|xstate|p-queue|p-timeout|eventemitter3)(?:\/|$))/u;
const states = new Map([lockfile, join(root, 'bootstrap', 'command-build.js')].map((file) => [file, stateOf(file)]));
/** Of Node's own: 6 and 2 ms to load, and most runs call none of it. They are loaded by the first call. */
const LOADED_WHEN_CALLED = ['node:crypto', 'node:zlib'];
const MARK = '\0when-called:';
/** Where the program has the name of what it was put together from: of other sources than these it knows nothing. */
const madeFrom = join(root, 'cli', 'src', 'process', 'made-from.ts');
const MADE_FROM = 'made from these sources';

/** Its functions alone: classes and values could not be told from what they stand for, so an import of one fails here. */
function loadedWhenCalled(name) {
  const functions = Object.entries(process.getBuiltinModule(name)).filter(
    ([called, value]) => typeof value === 'function' && /^[a-z]/u.test(called),
  );
  return functions
    .map(
      ([called]) =>
        `export const ${called} = (...given) => process.getBuiltinModule(${JSON.stringify(name)}).${called}(...given);\n`,
    )
    .join('');
}

const penstockCommand = {
  name: 'penstock-command',
  enforce: 'pre',
  resolveId(id, importer) {
    if (importer === undefined) return null;
    if (LOADED_WHEN_CALLED.includes(id)) return `${MARK}${id}`;
    const [, name] = (importer === commandList && /^\.\/commands\/([^/.]+)/u.exec(id)) || [];
    if (name !== undefined && !commands.includes(name))
      return { id: pathToFileURL(resolve(dirname(importer), id)).href, external: true };
    return IS_INSIDE.test(id) ? null : { id, external: true };
  },
  load(id) {
    if (id.startsWith(MARK)) return loadedWhenCalled(id.slice(MARK.length));
    // Before it is read, so that a source that changes meanwhile differs at the next start. Those of packages the lockfile stands for.
    if (!relative(root, id).startsWith('node_modules')) states.set(id, stateOf(id));
    return id === madeFrom ? `export const MADE_FROM = ${JSON.stringify(MADE_FROM)};\n` : null;
  },
  // What stands beside a module is found where its source is.
  transform: (code, id) =>
    code.includes('import.meta.url')
      ? { code: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href)), map: null }
      : null,
  // All of them have been loaded by now.
  renderChunk: (code) => ({ code: code.replaceAll(MADE_FROM, digestOf(states)), map: null }),
};

function digestOf(all) {
  return createHash('sha256')
    .update(JSON.stringify([...all].toSorted()))
    .digest('hex');
}

await build({
  root,
  configFile: false,
  logLevel: 'error',
  plugins: [penstockCommand],
  ssr: { noExternal: true },
  build: {
    ssr: join(root, 'cli', 'src', 'main.ts'),
    outDir: folder,
    emptyOutDir: false,
    target: 'esnext',
    minify: false,
    reportCompressedSize: false,
    rolldownOptions: { output: { entryFileNames: 'main.js', chunkFileNames: '[name]-[hash].js' } },
  },
});
// Or each file would be read once more to see what it is.
writeFileSync(join(folder, 'package.json'), '{"type":"module"}\n');
const files = [...states].map(([file, state]) => [relative(root, file), state]);
const nodeMajor = Number.parseInt(process.versions.node, 10);
writeFileSync(join(folder, 'manifest.json'), JSON.stringify({ root, commands, platform: PLATFORM, nodeMajor, files }));
