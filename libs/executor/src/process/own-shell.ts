/**
 * Which scripts a helper's shell may evaluate itself, in the process that it has forked for the stage: to make another shell of that
 * takes longer than all else that is done to start a stage. Nobody must see a difference but that complaints of the shell say
 * `eval`, as in a list of commands; where one could be seen, the stage gets a shell of its own.
 *
 * What differs in a forked shell, whatever it is told: `$$` is the number of its helper and `$PPID` another one, and it complains neither
 * of a `local` outside of a function nor of a `set -m` without a terminal. And what `eval`, `.` and a `trap` of a variable are given cannot
 * be looked at.
 */
import { realpathSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import type { StageCommand } from '../contract/port.ts';
import { quote } from './quote.ts';
import { HELPER_SHELL } from './scripts.ts';

/**
 * A `.` with a word behind it may be the command, and `local` without a path around it, too. What one of these goes through has no beginning of
 * another in it: a script of many is looked at once, and not once for each, which took seconds that all stages waited.
 */
const DIFFERS = new RegExp(
  [
    /\$\$|\$\{\$|PPID|\beval\b|\balias\b|\bmonitor\b/,
    /(?<![\w./-])local(?![\w./-])/,
    /(?<![^\s;&|(){}`!])\.[ \t]+(?:[<>][^\s;&|(){}`!]*[ \t]+)*(?:[^\s;&|)<>#]|[<>][^\s;&|)]*[({}`!])/,
    /\btrap[ \t]+(?:--[ \t]+)?\$|(?<![ \t][-+])\bset[ \t]+(?:[-+][A-Za-z]+[ \t]+)*[-+][A-Za-z]*m/,
  ]
    .map(({ source }) => source)
    .join('|'),
);
/** Taken out of the text before it is looked at: what is behind them would be hidden. */
const ESCAPES = /\\\n|[\\'"]/g;
/** A shell keeps this for itself when it starts, and takes it over when it is running. */
const KEPT_FROM_ENVIRONMENT = 'IFS';

/** dash alone is known to be the same, forked or new. */
export const isDash = basename(resolved(HELPER_SHELL)) === 'dash';

/**
 * Where this machine has the helper's shell as `sh`. The owner looks into these folders and into none that a stage names: what lies there
 * may take long to answer, and is not the owner's to reach for.
 */
const USUAL_FOLDERS = new Set(['/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin'].filter(hasHelperShell));
/** Of a PATH: each one before the shell's is asked for. */
const FOLDERS_MAX = 100;

/**
 * A condition for the shell to ask at the stage's start: whether `sh`, as the stage's PATH finds it, is another program than the
 * helper's shell. Null: the stage needs a shell of its own in any case.
 */
export function needsAnotherShell(
  commands: readonly StageCommand[],
  env: Readonly<Record<string, string>>,
  path = env['PATH'],
): string | null {
  if (!isDash || Object.hasOwn(env, KEPT_FROM_ENVIRONMENT)) return null;
  if (commands.some(({ script }) => DIFFERS.test(script.replaceAll(ESCAPES, '')))) return null;
  return conditionOf(path ?? '');
}

/** For the PATH that was asked about last: stages of one machine mostly have the same. */
let last: { readonly path: string; readonly condition: string | null } | undefined;

function conditionOf(path: string): string | null {
  if (last?.path !== path) last = { path, condition: conditionFor(path) };
  return last.condition;
}

/** Where the usual folders are says only where to look: the shell looks itself, in the stage's own view and then. */
function conditionFor(path: string): string | null {
  const asked = new Set<string>();
  for (const folder of path.split(':', FOLDERS_MAX)) {
    if (!folder.startsWith('/')) return null;
    const file = quote(`${folder}/sh`);
    // One command: a shell takes longer to begin one than to look.
    if (USUAL_FOLDERS.has(folder)) return `[ ${[...asked, `! ${file} -ef ${HELPER_SHELL}`].join(' -o ')} ]`;
    asked.add(`-e ${file}`);
  }
  return null;
}

function hasHelperShell(folder: string): boolean {
  try {
    const [found, own] = [statSync(`${folder}/sh`), statSync(HELPER_SHELL)];
    return found.dev === own.dev && found.ino === own.ino;
  } catch {
    return false;
  }
}

function resolved(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
