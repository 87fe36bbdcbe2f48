/**
 * What `penstock run` costs beside make and ninja: a thousand stages that are independent, and three hundred in a chain,
 * each `true` by a shell. All three run in the same minute, taking turns, two at a time; their medians are compared. And one stage, the whole
 * command, beside the start of Node alone.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const INDEPENDENT = 1_000;
const CHAIN = 300;
const REPETITIONS = 5;
/** To reach. */
const TIMES_NINJA_MAX = 1.5;
const SINGLE_MS_MAX = 120;
const JOBS = '-j2';
/** A machine so slow has something else to do. */
const RUN_MS_MAX = 120_000;

/** What npm's link to the command leads to. */
const COMMAND = fileURLToPath(new URL('../../bootstrap/penstock.sh', import.meta.url));

interface Contender {
  readonly name: string;
  readonly command: (shape: Shape) => readonly string[];
}

type Shape = 'independent' | 'chain' | 'single';

const CONTENDERS: readonly Contender[] = [
  { name: 'penstock run', command: (shape) => [COMMAND, 'run', JOBS, `${shape}.yaml`] },
  { name: 'ninja', command: (shape) => ['ninja', JOBS, '-f', `${shape}.ninja`] },
  { name: 'make', command: (shape) => ['make', JOBS, '-f', `${shape}.mk`] },
];

export async function benchLocalRun(): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-bench-'));
  try {
    for (const [shape, count] of [
      ['independent', INDEPENDENT],
      ['chain', CHAIN],
      ['single', 1],
    ] as const)
      writeShape(folder, shape, count, shape === 'chain');
    const present = CONTENDERS.filter(
      ({ name }) => name === 'penstock run' || spawnSync(name, ['--version']).status === 0,
    );
    const absent = CONTENDERS.filter((contender) => !present.includes(contender));
    const lines = [
      ...(await compare(folder, 'independent', INDEPENDENT, present)),
      ...(await compare(folder, 'chain', CHAIN, present)),
      await single(folder),
    ];
    return [...lines, ...absent.map(({ name }) => `not compared with ${name}: it is not on this machine`)];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compare(
  folder: string,
  shape: Shape,
  stages: number,
  contenders: readonly Contender[],
): Promise<string[]> {
  const times = new Map<string, { whole: number[]; start: number[] }>(
    contenders.map(({ name }) => [name, { whole: [], start: [] }]),
  );
  // Their caches (compiled code, what the file means, directory entries) are warm for all of them, as in daily use.
  for (const contender of contenders)
    for (const warmed of ['single', shape] as const) await milliseconds(folder, contender.command(warmed));
  for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
    for (const contender of contenders) {
      times.get(contender.name)?.start.push(await milliseconds(folder, contender.command('single')));
      times.get(contender.name)?.whole.push(await milliseconds(folder, contender.command(shape)));
    }
  }
  const figures = contenders.map(({ name }) => {
    const whole = median(times.get(name)?.whole ?? []);
    return { name, whole, aStage: (whole - median(times.get(name)?.start ?? [])) / (stages - 1) };
  });
  const [own, ...peers] = figures;
  if (own === undefined) return [];
  const title = shape === 'chain' ? `a chain of ${stages} stages` : `${stages} independent stages`;
  return [
    `${title} (${JOBS}): ${figures.map(({ name, whole, aStage }) => `${name} ${whole.toFixed(0)} ms, ${aStage.toFixed(2)} ms a stage`).join('; ')}`,
    ...peers.map(
      (peer) =>
        `  ${ratio(own.whole, peer.whole)}x ${peer.name} in all, ${ratio(own.aStage, peer.aStage)}x a stage${peer.name === 'ninja' ? ` (to reach in all: ${TIMES_NINJA_MAX}x)` : ''}`,
    ),
  ];
}

async function single(folder: string): Promise<string> {
  const whole: number[] = [];
  const node: number[] = [];
  for (let repetition = 0; repetition < REPETITIONS; repetition += 1) {
    whole.push(await milliseconds(folder, [COMMAND, 'run', 'single.yaml']));
    node.push(await milliseconds(folder, [process.execPath, '-e', '0']));
  }
  return `one stage, whole command: penstock run ${median(whole).toFixed(0)} ms; Node alone ${median(node).toFixed(0)} ms (to reach: ${SINGLE_MS_MAX})`;
}

function writeShape(folder: string, shape: Shape, count: number, chained: boolean): void {
  const before = (index: number): string => (chained && index > 0 ? `s${index - 1}` : '');
  const numbers = Array.from({ length: count }, (_, index) => index);
  const stages = numbers.map(
    (index) => `  s${index}: {run: "true"${before(index) === '' ? '' : `, after: ${before(index)}`}}\n`,
  );
  writeFileSync(join(folder, `${shape}.yaml`), `pipeline: {name: ${shape}}\nstages:\n${stages.join('')}`);
  const builds = numbers.map((index) => `build s${index}: shell ${before(index)}\n`);
  writeFileSync(join(folder, `${shape}.ninja`), `rule shell\n  command = true\n${builds.join('')}`);
  // make runs a plain `true` without a shell; the others do not have that way.
  const rules = numbers.map((index) => `s${index}: ${before(index)}\n\t@true; true\n`);
  writeFileSync(
    join(folder, `${shape}.mk`),
    `.PHONY: all ${numbers.map((index) => `s${index}`).join(' ')}\nall: ${numbers.map((index) => `s${index}`).join(' ')}\n${rules.join('')}`,
  );
}

async function milliseconds(folder: string, [file = '', ...args]: readonly string[]): Promise<number> {
  const began = performance.now();
  const child = spawn(file, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'], timeout: RUN_MS_MAX });
  const code = await new Promise<number | null>((resolve, reject) => child.once('error', reject).once('exit', resolve));
  if (code !== 0) throw new Error(`${file} ${args.join(' ')} ended with ${code ?? 'a signal'}`);
  return performance.now() - began;
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function ratio(own: number, peer: number): string {
  return (own / peer).toFixed(2);
}
