/**
 * Installs the locked dependencies when they are missing or stale.
 *
 * DEPENDENCIES-1. `node_modules/.penstock-stamp.json` is written only after everything is in place and Node 26 has been started once; npm
 *     empties node_modules first, so a killed install leaves no stamp and the next start installs again.
 * DEPENDENCIES-2. The stamp says for which lockfile and platform (stamp.js).
 * DEPENDENCIES-3. A tree that someone installed with npm itself is taken as it is where npm's own record of it agrees with the lockfile.
 * DEPENDENCIES-4. Install scripts never run.
 */
import { spawn } from 'node:child_process';
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { exitLike, passSignals } from './child.js';
import { BootstrapProblem } from './errors.js';
import { withLock } from './lock.js';
import { assertPlatform, assertRuns, nodeBinary } from './node-binary.js';
import { isStamped, lockfile, writeStamp } from './stamp.js';

/** Enough of npm's output to find its reason in; it prints a page at most unless something is broken. */
const OUTPUT_CHARS_MAX = 64 * 1024;

/** npm's own pauses (10 s, then 60 s) leave a person without a network looking at nothing for over a minute. */
const RETRY_PAUSES = ['--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=5000'];

/** A user's own settings may say the opposite, and npm then ends well and has installed nothing, or not where others look for it. */
const HERE_AND_WHOLE = [
  '--no-dry-run',
  '--no-package-lock-only',
  '--no-global',
  '--location=project',
  '--install-strategy=hoisted',
];
/** These cannot be taken back by an option: `npm start --no-workspaces` installed none of our own packages. */
const PARTS = ['npm_config_workspace', 'npm_config_workspaces'];

/** Resolves when `root/node_modules` is what the lockfile says; `say` gets a line only where there is something to do. */
export async function ensureDependencies({ root, env, pins, say }) {
  assertPlatform(pins);
  if (isStamped(root, pins)) return;
  await withLock(join(root, '.cache', 'install.lock'), say, async (tellLock) => {
    if (isStamped(root, pins)) return; // The start that held the lock before us did it.
    const binary = nodeBinary(root, pins);
    if (!(existsSync(binary) && agreesWithLockfile(root))) {
      say(
        existsSync(join(root, 'node_modules'))
          ? 'Updating the locked dependencies.'
          : 'Installing the locked dependencies (about half a minute).',
      );
      await npmCi(root, env, tellLock);
    }
    await assertRuns(binary, pins);
    writeStamp(root, binary);
  });
}

/** Whether npm's record of what it installed has every package of the lockfile for this platform, and no other. */
function agreesWithLockfile(root) {
  try {
    const wanted = packagesOf(lockfile(root));
    const present = packagesOf(join(root, 'node_modules', '.package-lock.json'));
    const isHere = ([path, entry]) => {
      const installed = present.get(path);
      if (!installed) return Boolean(entry.optional) && mayBeAbsent(entry);
      const same =
        installed.version === entry.version &&
        installed.link === entry.link &&
        (!entry.integrity || installed.integrity === entry.integrity);
      return same && existsSync(join(root, path));
    };
    return [...wanted].every(isHere) && [...present.keys()].every((path) => wanted.has(path));
  } catch {
    return false;
  }
}

function packagesOf(file) {
  const { packages } = JSON.parse(readFileSync(file, 'utf8'));
  return new Map(Object.entries(packages).filter(([path]) => path.startsWith('node_modules/')));
}

/**
 * Whether npm was right to leave an optional package out: it is for another system, or it has no system of its own and only
 * serves one that is (npm then leaves out both). Node 26 from npm needs glibc, so what is for musl is never for us.
 */
function mayBeAbsent({ os, cpu, libc }) {
  const excludes = (list, value) =>
    list !== undefined && ![list].flat().some((each) => (each.startsWith('!') ? each !== `!${value}` : each === value));
  if (os === undefined && cpu === undefined) return true;
  return excludes(os, process.platform) || excludes(cpu, process.arch) || excludes(libc, 'glibc');
}

async function npmCi(root, env, tellLock) {
  // Development and optional packages are asked for by name, for a user's NODE_ENV or npm settings may leave them out: the
  // checks need the former, and Node 26 itself is among the latter. `loglevel error` hides what npm thinks of Node 20.
  const args = [
    'ci',
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--include=dev',
    '--include=optional',
    '--loglevel=error',
    '--no-engine-strict',
    '--no-progress',
    ...HERE_AND_WHOLE,
    ...RETRY_PAUSES,
  ];
  const npmEnv = Object.fromEntries(Object.entries(env).filter(([name]) => !PARTS.includes(name.toLowerCase())));
  if (!homeIsWritable(env)) npmEnv.npm_config_cache = join(root, '.cache', 'npm');
  const { code, output } = await runNpm(args, root, npmEnv, tellLock);
  if (code === 0) return;
  const lines = output.split('\n').map((line) => line.replace(/^npm (ERR!|error)\s?/i, '').trim());
  const reason =
    lines.find((line) => /^Missing: |^Invalid: /.test(line)) ??
    lines.find((line) => line && !/^(code|errno|syscall|A complete log)\b/.test(line)) ??
    `npm ended with ${code}`;
  const errorCode = lines.find((line) => line.startsWith('code '))?.slice(5);
  const remedy =
    errorCode === 'EUSAGE'
      ? 'package.json and package-lock.json do not belong together; run npm install and commit both.'
      : 'check that the registry npm is configured for can be reached (npm ping) and that the disk has room, and run the command again.';
  throw new BootstrapProblem(
    `the dependencies cannot be installed (${errorCode ? `${errorCode}: ` : ''}${reason.replace(/\.$/, '')}): ${remedy}`,
  );
}

/**
 * The npm that started us where there is one, with the Node that runs it (ours may be the one in node_modules, which npm is
 * about to remove), else the one on the PATH.
 */
function runNpm(args, root, env, tellLock) {
  const own = env.npm_execpath && basename(env.npm_execpath) === 'npm-cli.js' && existsSync(env.npm_execpath);
  const command = own ? [env.npm_node_execpath || process.execPath, env.npm_execpath, ...args] : ['npm', ...args];
  return new Promise((resolve, reject) => {
    const child = spawn(command[0], command.slice(1), {
      cwd: root,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      shell: !own && process.platform === 'win32',
    });
    // Killed at once we leave it behind: the next start waits for what it installs.
    if (child.pid !== undefined) tellLock(child.pid);
    let output = '';
    const keep = (chunk) => {
      if (output.length < OUTPUT_CHARS_MAX) output += chunk;
    };
    child.stdout.on('data', keep);
    child.stderr.on('data', keep);
    child.once('error', (error) =>
      reject(
        new BootstrapProblem(
          `npm cannot be started (${error.code}): install npm, which comes with Node, and run the command again.`,
        ),
      ),
    );
    // An npm that is left alone would go on beside the next start's, and take away what that one has installed.
    const endPassing = passSignals(child);
    child.once('close', (code, signal) => {
      const came = endPassing();
      if (came) exitLike({ signal: came });
      resolve({ code: code ?? signal, output });
    });
  });
}

function homeIsWritable(env) {
  try {
    accessSync(env.HOME || homedir(), constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
