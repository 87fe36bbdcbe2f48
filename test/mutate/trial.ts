/** Runs checks in a working copy, and says whether they pass. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Check } from './mutant.ts';

/** A check that takes longer is stuck: the slowest takes 40 s on two cores. */
const CHECK_MS_MAX = 240_000;
const KILL_AFTER_MS = 5_000;
/** Of a check's output; its end is what says why. */
const OUTPUT_CHARACTERS_MAX = 64 * 1024;

export type Verdict =
  | { readonly kind: 'passed'; readonly count: number }
  | { readonly kind: 'failed'; readonly why: string }
  /** Nothing was checked: no title fits, or the program could not begin. */
  | { readonly kind: 'unusable'; readonly why: string };

export function nameOf(check: Check): string {
  if ('worlds' in check) return `${check.worlds} worlds of the simulation`;
  const { tests, titles } = check;
  return titles === undefined ? tests : `${tests}: ${titles.map((title) => `"${title}"`).join(', ')}`;
}

/** `root` is the copy's. */
export async function runCheck(root: string, check: Check): Promise<Verdict> {
  return 'worlds' in check ? await runWorlds(root, check.worlds) : await runTests(root, check);
}

async function runWorlds(root: string, worlds: number): Promise<Verdict> {
  const { code, output, isLate } = await run(root, [
    'test/simulation/runs/main.ts',
    '--seeds',
    String(worlds),
    '--workers',
    '1',
  ]);
  if (isLate) return { kind: 'failed', why: 'it did not end' };
  if (code === 0) return { kind: 'passed', count: worlds };
  const broken = /^seed \d+ breaks .*$/m.exec(output)?.[0];
  return { kind: 'failed', why: broken ?? lastLine(output) };
}

interface Report {
  readonly numPassedTests: number;
  readonly testResults: readonly {
    readonly message?: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

async function runTests(
  root: string,
  { tests, titles }: { readonly tests: string; readonly titles?: readonly string[] | undefined },
): Promise<Verdict> {
  const report = join(root, '.mutate-report.json');
  rmSync(report, { force: true });
  const { code, output, isLate } = await run(root, [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--bail=1',
    '--reporter=json',
    `--outputFile=${report}`,
    tests,
    ...(titles === undefined ? [] : ['-t', titles.map(escaped).join('|')]),
  ]);
  if (isLate) return { kind: 'failed', why: 'it did not end' };
  const found = readReport(report);
  if (found === undefined) return { kind: 'unusable', why: lastLine(output) };
  if (code === 0)
    return found.numPassedTests > 0
      ? { kind: 'passed', count: found.numPassedTests }
      : { kind: 'unusable', why: 'no test fits' };
  const failed = found.testResults.flatMap(({ assertionResults }) =>
    assertionResults.filter(({ status }) => status === 'failed'),
  );
  return { kind: 'failed', why: failed[0]?.fullName ?? found.testResults[0]?.message ?? lastLine(output) };
}

function readReport(file: string): Report | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report;
  } catch {
    return undefined;
  }
}

/** A Node program of the copy, in a process group of its own, so that what it starts ends with it. */
function run(
  root: string,
  args: readonly string[],
): Promise<{ readonly code: number | null; readonly output: string; readonly isLate: boolean }> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { cwd: root, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let isLate = false;
    const take = (data: Buffer): void => {
      output = (output + data.toString()).slice(-OUTPUT_CHARACTERS_MAX);
    };
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    const signalGroup = (signal: NodeJS.Signals): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, signal);
      } catch {
        // It has ended meanwhile.
      }
    };
    const onExit = (): void => signalGroup('SIGKILL');
    process.once('exit', onExit);
    const timer = setTimeout(() => {
      isLate = true;
      signalGroup('SIGTERM');
      setTimeout(() => signalGroup('SIGKILL'), KILL_AFTER_MS).unref();
    }, CHECK_MS_MAX);
    child.once('error', (error) => take(Buffer.from(error.message)));
    child.once('close', (code) => {
      clearTimeout(timer);
      process.off('exit', onExit);
      resolve({ code, output, isLate });
    });
  });
}

function escaped(title: string): string {
  return title.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

function lastLine(output: string): string {
  return output.trimEnd().split('\n').at(-1) ?? '';
}
