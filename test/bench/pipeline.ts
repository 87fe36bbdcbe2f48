/**
 * How long a bad file keeps the process busy, and what reading a good one costs beside the YAML package alone. Each
 * hostile file is refused once cold, then as often again as fits; the maximum is named, for it is what an attacker gets.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parsePipeline, type ResolvedExtension } from '@penstock/pipeline';
import { parseDocument } from 'yaml';
import { hostileFiles } from '@penstock/pipeline/testing';

/** What refusing any file may take. */
const REFUSAL_MS_MAX = 50;
const REPETITIONS = 5;
const FIXTURES = join(import.meta.dirname, '..', '..', 'libs', 'pipeline', 'test', 'fixtures', 'refused');

export async function benchPipeline(): Promise<string[]> {
  return [...refusals(), ...parses(), ...expansions()];
}

function refusals(): string[] {
  const files = [
    ...readdirSync(FIXTURES).map((name) => ({ name, text: readFileSync(join(FIXTURES, name), 'utf8') })),
    ...hostileFiles().map(({ name, text }) => ({ name, text })),
  ];
  const timed = files.map(({ name, text }) => {
    const times = Array.from({ length: REPETITIONS }, () => elapsed(() => parsePipeline(text)));
    const [cold = 0] = times;
    return { name, cold, warm: median(times) };
  });
  const line = (label: string, of: (file: (typeof timed)[number]) => number): string => {
    const slowest = timed.reduce((worst, file) => (of(file) > of(worst) ? file : worst));
    const over = timed.filter((file) => of(file) > REFUSAL_MS_MAX).length;
    return `${label}: median ${of(timed.toSorted((left, right) => of(left) - of(right))[timed.length >> 1] ?? slowest).toFixed(2)} ms, max ${of(slowest).toFixed(1)} ms (${slowest.name}), over ${REFUSAL_MS_MAX} ms: ${over}`;
  };
  return [
    `${files.length} bad and hostile files, limit ${REFUSAL_MS_MAX} ms each`,
    line('  refused, first time in the process', ({ cold }) => cold),
    line('  refused, median of five', ({ warm }) => warm),
  ];
}

function parses(): string[] {
  const chain = (count: number): string =>
    `pipeline:\n  name: bench\nstages:\n${Array.from({ length: count }, (_, index) => `  stage-${index}:\n    run: echo ${index}\n${index === 0 ? '' : `    after: [stage-${index - 1}]\n`}`).join('')}`;
  return [
    compare('three stages', chain(3), 400),
    compare('1,000 stages', chain(1_000), 15),
    compare('2,000 stages', chain(2_000), 9),
  ];
}

/** What reading extensions adds, and what the most hostile of them cost. */
function expansions(): string[] {
  const time = (label: string, text: string, extensions: readonly ResolvedExtension[]): string => {
    const times = Array.from({ length: REPETITIONS }, () => elapsed(() => parsePipeline(text, { extensions })));
    const result = parsePipeline(text, { extensions });
    const outcome = result.ok
      ? `${result.definition.stages.length} stages`
      : (result.diagnostics[0]?.message ?? '').slice(0, 60);
    return `  ${label}: ${median(times).toFixed(2)} ms (${outcome})`;
  };
  const extension = (uses: string, body: string): ResolvedExtension => {
    const [id = '', version = ''] = uses.split('@');
    return {
      uses,
      id,
      version,
      hash: '0'.repeat(64),
      manifest: `id: ${id}\nversion: ${version}\ndescription: d\n${body}`,
    };
  };
  const uses = (count: number, id: string, given = ''): string =>
    `pipeline: {name: p}\nstages:\n${Array.from({ length: count }, (_, index) => `  s${index}: {uses: ${id}@1.0.0${given}}\n`).join('')}`;
  const suite = extension(
    'test/suite@1.0.0',
    "inputs: {a: {default: x}}\noutputs: {v: {value: '${{ stages.one.outputs.v }}'}}\nstages:\n  one: {run: 'echo ${{ inputs.a }}', outputs: [v]}\n  two: {run: 'echo ${{ stages.one.outputs.v }}', after: one}\n",
  );
  const wide = extension(
    'test/wide@1.0.0',
    `stages:\n${Array.from({ length: 1_900 }, (_, index) => `  s${index}: {run: x}\n`).join('')}`,
  );
  const input = "inputs: {i: {default: ''}}\n";
  const many = (level: number): ResolvedExtension =>
    extension(
      `build/m${level}@1.0.0`,
      `${input}stages:\n  a: {uses: build/m${level + 1}@1.0.0, with: {i: "${'${{ inputs.i }}'.repeat(90)}"}}\n`,
    );
  const chain = [many(0), many(1), many(2), many(3), extension('build/m4@1.0.0', `${input}run: x\n`)];
  return [
    'extensions',
    time('one use of two stages', uses(1, 'test/suite'), [suite]),
    time('1,000 uses of two stages', uses(1_000, 'test/suite'), [suite]),
    time('2,000 uses of 1,900 stages', uses(2_000, 'test/wide'), [wide]),
    time(
      'inputs in inputs, 90 times at each of five levels',
      uses(500, 'build/m0', ", with: {i: '${{ run.id }} x'}"),
      chain,
    ),
  ];
}

/** The two are interleaved, so that both meet the same neighbours. */
function compare(label: string, text: string, repetitions: number): string {
  const ours: number[] = [];
  const yaml: number[] = [];
  for (let repetition = 0; repetition < repetitions; repetition++) {
    ours.push(elapsed(() => parsePipeline(text)));
    yaml.push(elapsed(() => parseDocument(text, { prettyErrors: false, uniqueKeys: false })));
  }
  return `${label}: ${median(ours).toFixed(2)} ms checked and expanded; the yaml package alone ${median(yaml).toFixed(2)} ms (${(median(ours) / median(yaml)).toFixed(2)}x)`;
}

function elapsed(work: () => unknown): number {
  const from = performance.now();
  work();
  return performance.now() - from;
}

function median(times: readonly number[]): number {
  return times.toSorted((left, right) => left - right)[times.length >> 1] ?? 0;
}

if (import.meta.main) for (const line of await benchPipeline()) console.log(line);
