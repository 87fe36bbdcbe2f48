/**
 * Puts the sources of some commands together, by the vite that builds the dashboard. A program of its own, run by Node 26:
 * `command-build.js <checkout> <folder> <set> <place>`. What the folder then has is described in command.js.
 */
import { createHash } from 'node:crypto';
import { readdirSync, writeFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'vite';
import { NODE_MAJOR, PLATFORM, SETS, stateOf } from './command.js';

const [root, folder, set, place] = process.argv.slice(2);
const { commands } = SETS[set];
const commandList = join(root, 'cli', 'src', 'commands.ts');
const lockfile = join(root, 'package-lock.json');
const states = new Map([lockfile, join(root, 'bootstrap', 'command-build.js')].map((file) => [file, stateOf(file)]));
/** Where the program has the name of what it was put together from: of other sources than these it knows nothing. */
const madeFrom = join(root, 'cli', 'src', 'process', 'made-from.ts');
const MADE_FROM = 'made from these sources';

/** Ours, and packages that are many files and that every run loads; others are loaded as ever. */
const IS_INSIDE_RUN = /^(?:@penstock\/|\.|\/|(?:yaml|xstate|p-queue|p-timeout|eventemitter3)(?:\/|$))/u;
/** Of Node's own: 6 and 2 ms to load, and most runs call none of it. They are loaded by the first call. */
const LOADED_WHEN_CALLED = ['node:crypto', 'node:zlib'];
const MARK = '\0when-called:';
/** Large, and loaded by few servers, which do so once they are up. */
const IS_OUTSIDE_SERVER = /^(?:@aws-sdk|@smithy|@kubernetes)\//u;

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

/** For the commands that end soon: what most of them do not call is left to Node. */
const forRuns = {
  name: 'penstock-for-runs',
  enforce: 'pre',
  resolveId(id, importer) {
    if (importer === undefined) return null;
    if (LOADED_WHEN_CALLED.includes(id)) return `${MARK}${id}`;
    return IS_INSIDE_RUN.test(id) ? null : { id, external: true };
  },
  load: (id) => (id.startsWith(MARK) ? loadedWhenCalled(id.slice(MARK.length)) : null),
};

/** For servers: all that they load, also of packages, and the programs of their threads. */
const forServers = {
  name: 'penstock-for-servers',
  enforce: 'pre',
  resolveId(id, importer, { kind }) {
    if (importer === undefined || id.startsWith('\0')) return null;
    if (isBuiltin(id) || IS_OUTSIDE_SERVER.test(id)) return { id, external: true };
    return foundByNode(id, importer, kind) ?? { id, external: true };
  },
  transform(code, id) {
    if (id.startsWith('\0')) return null;
    const changed = isOurs(id) ? withPrograms(this, code, id) : withOwnPlace(code, id);
    return changed === code ? null : { code: changed, map: null };
  },
};

/**
 * Vite finds another file of a package that exists twice (graphql), and who requires it would not have the one that others import.
 * Undefined: it is optional and not there, which whoever asks for it then hears from Node; or it is in a folder above or on NODE_PATH,
 * where others keep what they like.
 */
function foundByNode(id, importer, kind) {
  try {
    const file =
      kind === 'require-call'
        ? createRequire(importer).resolve(id)
        : fileURLToPath(import.meta.resolve(id, pathToFileURL(importer).href));
    return file.startsWith(join(root, '/')) ? file : undefined;
  } catch {
    return undefined;
  }
}

const OWN_PROGRAM = /new URL\(\s*'(?:\.\/)?([\w-]+)\.ts',\s*import\.meta\.url,?\s*\)/gu;
const REQUIRED = /createRequire\(\s*import\.meta\.url,?\s*\)\(\s*('[^']+')\s*\)/gu;

/** The program of a thread or of a process is put together as well, and found beside the others. */
function withPrograms(context, code, id) {
  return code
    .replaceAll(OWN_PROGRAM, (_all, name) => {
      const program = join(dirname(id), `${name}.ts`);
      const fileName = `${relative(root, program).replaceAll(/[^\w-]+/gu, '-')}.js`;
      context.emitFile({ type: 'chunk', id: program, fileName });
      return `new URL('./${fileName}', ${OF_THE_MADE})`;
    })
    .replaceAll(REQUIRED, 'require($1)');
}

/** As Node tells it a package of the older kind. */
function withOwnPlace(code, id) {
  if (!/\b__(?:dirname|filename)\b/u.test(code) || /(?:const|let|var)\s+__(?:dirname|filename)\b/u.test(code))
    return code;
  return code
    .replaceAll(/\b__dirname\b/gu, () => JSON.stringify(dirname(id)))
    .replaceAll(/\b__filename\b/gu, () => JSON.stringify(id));
}

const OF_THE_MADE = 'import.meta.of_the_made';
const isOurs = (id) => !relative(root, id).startsWith('node_modules');

const otherCommands = {
  name: 'penstock-other-commands',
  enforce: 'pre',
  resolveId(id, importer) {
    const [, name] = (importer === commandList && /^\.\/commands\/([^/.]+)/u.exec(id)) || [];
    if (name === undefined || commands.includes(name)) return null;
    return { id: pathToFileURL(resolve(dirname(importer), id)).href, external: true };
  },
};

const sources = {
  name: 'penstock-sources',
  enforce: 'pre',
  load(id) {
    // Before it is read, so that a source that changes meanwhile differs at the next start. Those of packages the lockfile stands for.
    if (!id.startsWith('\0') && isOurs(id)) states.set(id, stateOf(id));
    return id === madeFrom ? `export const MADE_FROM = ${JSON.stringify(MADE_FROM)};\n` : null;
  },
  // What stands beside a module is found where its source is.
  transform(code, id) {
    if (id.startsWith('\0') || id.endsWith('.json')) return null;
    // By a function: a path may hold what a replacement's text has a meaning for (`$&`).
    const placed = code
      .replaceAll('import.meta.url', () => JSON.stringify(pathToFileURL(id).href))
      .replaceAll(OF_THE_MADE, 'import.meta.url');
    // A trace names the made file; there this stands above what is of this source.
    return { code: isOurs(id) ? `/*! ${relative(root, id)} */\n${placed}` : placed, map: null };
  },
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
  logLevel: 'silent',
  plugins: [otherCommands, set === 'penstock-server' ? forServers : forRuns, sources],
  ssr: { noExternal: true },
  build: {
    ssr: join(root, 'cli', 'src', 'main.ts'),
    outDir: folder,
    emptyOutDir: false,
    target: 'esnext',
    minify: false,
    reportCompressedSize: false,
    rolldownOptions: { output: { entryFileNames: 'main.js', chunkFileNames: '[name].js' } },
  },
});
// Or each file would be read once more to see what it is.
writeFileSync(join(folder, 'package.json'), '{"type":"module"}\n');
const files = [...states].map(([file, state]) => [relative(root, file), state]);
const made = readdirSync(folder).map((name) => [name, stateOf(join(folder, name))]);
const manifest = { root, commands, platform: PLATFORM, nodeMajor: NODE_MAJOR, place: Number(place), files, made };
writeFileSync(join(folder, 'manifest.json'), JSON.stringify(manifest));
