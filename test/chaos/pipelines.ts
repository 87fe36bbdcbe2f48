/**
 * Random pipelines whose stages leave evidence: a file per stage with the moments at which each attempt started, lived and
 * ended, and numbered lines in the log. So what was executed can be compared with what the engine says.
 */
import type { Random } from '../support/random.ts';

export interface ChaosPipeline {
  readonly name: string;
  readonly yaml: string;
  readonly stages: readonly ChaosStage[];
  /** Runs of this pipeline go one at a time. */
  readonly grouped: boolean;
}

export interface ChaosStage {
  readonly name: string;
  readonly after: readonly string[];
  /** Lines that a whole attempt writes. */
  readonly lines: number;
  readonly retriesLost: boolean;
  /** It publishes which attempt of which run it is. */
  readonly publishes?: boolean;
  /** It runs nothing, and waits for so many people. */
  readonly gate?: GateShape | undefined;
  /** How many stages each attempt of it adds. */
  readonly adds?: number | undefined;
}

interface GateShape {
  readonly quorum: 1 | 2;
  /** Whether it names its approvers; else whoever may cancel the run decides. */
  readonly named: boolean;
  readonly timeoutSecs: number;
}

type Shape =
  | 'quick'
  | 'wide'
  | 'graph'
  | 'ticking'
  | 'chatty'
  | 'failing'
  | 'grouped'
  | 'daemon'
  | 'huge'
  | 'vast'
  | 'gated'
  | 'generating';

/** How often each shape is drawn, against the others. */
export type Shapes = Readonly<Partial<Record<Shape, number>>>;

export interface PipelineMaker {
  readonly random: Random;
  /** Where the stages leave their files. */
  readonly marksFolder: string;
  /** In the environment of every stage, so that its processes can be found. */
  readonly token: string;
  /** The addresses of those who decide gates that name somebody. */
  readonly approvers: readonly string[];
  readonly shapes: Shapes;
}

/** Enough names that every one of 16 partitions has some: the name decides the key, and the key the partition. */
const NAMES = 40;
const GROUPED_NAMES = 4;
/** Of one run: more than all slots of a cluster; the rest of them behind the first ones. */
const WIDE_STAGES = 100;
const WIDE_FIRST = 30;
/** Together nearly what a file may have, each nearly what a command may. */
const HUGE_STAGES = 5;
const HUGE_BYTES = 98 * 1024;
/** What nobody decides in time ends by itself: also a run of which no client knows. */
const GATE_SECS = 12;
const SHORT_GATE_SECS = 3;
/** The input that the shape with gates has, and what a run of its own accord has for it. */
export const INPUT = { name: 'version', default: 'one' } as const;
/** All that a run may have; behind the first, which fails, so that the others are skipped together. */
const VAST_STAGES = 2_000;

export function makePipeline({ random, marksFolder, token, shapes, approvers }: PipelineMaker): ChaosPipeline {
  const shape = pickWeighted(random, shapes);
  const grouped = shape === 'grouped';
  const name = grouped ? `chaos-group-${random.int(GROUPED_NAMES)}` : `chaos-${random.int(NAMES)}`;
  const stages = stagesOf(shape, random);
  const lines = ['pipeline:', `  name: ${name}`, 'env:', `  CHAOS_TOKEN: ${token}`, `  MARKS: ${marksFolder}`];
  if (grouped) lines.push('concurrency:', '  group: all');
  if (shape === 'gated') lines.push('inputs:', `  ${INPUT.name}: { type: string, default: ${INPUT.default} }`);
  lines.push('stages:');
  for (const stage of stages) lines.push(...stageText(stage, approvers));
  return { name, yaml: `${lines.join('\n')}\n`, stages, grouped };
}

interface StageDraft extends ChaosStage {
  /** Seconds between two marks that the attempt lives, and how many of them. */
  readonly tickSecs: number;
  readonly ticks: number;
  /** Attempts up to this one exit with 1. */
  readonly failsUpTo: number;
  readonly retriesFailure: boolean;
  readonly allowFailure: boolean;
  readonly leavesDaemon: boolean;
  /** Of a comment in its script. */
  readonly paddingBytes: number;
  /** It is never to run, and leaves no evidence that it did: a run of many has a short file. */
  readonly isSkipped: boolean;
}

const PLAIN: StageDraft = {
  name: '',
  after: [],
  lines: 2,
  retriesLost: false,
  tickSecs: 0.1,
  ticks: 0,
  failsUpTo: 0,
  retriesFailure: false,
  allowFailure: false,
  leavesDaemon: false,
  paddingBytes: 0,
  isSkipped: false,
};

function stagesOf(shape: Shape, random: Random): StageDraft[] {
  const stage = (name: string, more: Partial<StageDraft> = {}): StageDraft => ({
    ...PLAIN,
    name,
    retriesLost: random.chance(0.7),
    ticks: random.int(3),
    ...more,
  });
  switch (shape) {
    case 'quick':
      return [stage('only', { ticks: 0 })];
    case 'wide':
      return Array.from({ length: WIDE_STAGES }, (_, index) =>
        stage(`w${index}`, { ticks: 0, after: index < WIDE_FIRST ? [] : [`w${index % WIDE_FIRST}`] }),
      );
    case 'grouped':
      return [stage('first', { publishes: true }), stage('second', { after: ['first'] })];
    case 'ticking':
      return [
        stage('tick', { ticks: 10 + random.int(30), lines: 5, retriesLost: true }),
        stage('then', { after: ['tick'], retriesLost: true }),
      ];
    case 'chatty':
      return [stage('talk', { lines: 200 + random.int(2_000), ticks: 2 })];
    case 'failing': {
      const failsUpTo = 1 + random.int(2);
      return [
        stage('flaky', { failsUpTo, retriesFailure: true, retriesLost: true }),
        stage('fails', { failsUpTo: 1_000, allowFailure: random.chance(0.5), ticks: 0 }),
        stage('after-flaky', { after: ['flaky'] }),
        stage('after-fails', { after: ['fails'] }),
      ];
    }
    case 'daemon':
      return [stage('leaves', { leavesDaemon: true }), stage('then', { after: ['leaves'] })];
    case 'huge':
      return Array.from({ length: HUGE_STAGES }, (_, index) =>
        stage(`h${index}`, { ticks: 0, paddingBytes: HUGE_BYTES, after: index === 0 ? [] : ['h0'] }),
      );
    case 'vast':
      return Array.from({ length: VAST_STAGES }, (_, index) =>
        index === 0
          ? stage('gate', { failsUpTo: 1_000, ticks: 8 })
          : stage(`v${index}`, { isSkipped: true, after: ['gate'] }),
      );
    case 'graph':
      return Array.from({ length: 3 + random.int(6) }, (_, index) => {
        const after = Array.from({ length: index }, (_unused, before) => `s${before}`).filter(() =>
          random.chance(0.35),
        );
        return stage(`s${index}`, { after, publishes: true });
      });
    case 'gated': {
      const gate: GateShape = {
        quorum: random.chance(0.3) ? 2 : 1,
        named: true,
        timeoutSecs: random.chance(0.25) ? SHORT_GATE_SECS : GATE_SECS,
      };
      return [
        stage('build', { publishes: true, ticks: 0, retriesLost: true }),
        stage('promote', {
          after: ['build'],
          lines: 0,
          gate: gate.quorum === 1 && random.chance(0.3) ? { ...gate, named: false } : gate,
        }),
        stage('deploy', { after: ['promote'], publishes: true, retriesLost: true }),
        stage('beside', { after: ['build'], publishes: true }),
      ];
    }
    case 'generating':
      return [
        stage('plan', { adds: 1 + random.int(3), failsUpTo: random.int(2), retriesFailure: true, retriesLost: true }),
        stage('then', { after: ['plan'], publishes: true }),
      ];
  }
}

/** What the attempt of this number adds, and what that does. Another one adds others, so that it is seen whose were taken. */
export function addedBy(generator: ChaosStage, attempt: number): ChaosStage[] {
  return Array.from({ length: generator.adds ?? 0 }, (_, index) => ({
    name: `${generator.name}/a${attempt}-${index}`,
    after: index === FOLLOWING ? [generator.name, `${generator.name}/a${attempt}-0`] : [generator.name],
    lines: ADDED_LINES,
    retriesLost: true,
    publishes: true,
  }));
}

const ADDED_LINES = 2;
/** Of the stages that are added: the one that comes after the first of them. */
const FOLLOWING = 2;

function stageText(stage: StageDraft, approvers: readonly string[]): string[] {
  const lines = [`  ${stage.name}:`];
  if (stage.after.length > 0) lines.push(`    after: [${stage.after.join(', ')}]`);
  if (stage.gate !== undefined) {
    const { quorum, named, timeoutSecs } = stage.gate;
    const who = named ? [`approvers: [${approvers.join(', ')}]`] : [];
    return [...lines, `    approval: { ${[...who, `quorum: ${quorum}`, `timeout: ${timeoutSecs}s`].join(', ')} }`];
  }
  // Far beyond what any takes, and below what clocks are stepped by.
  lines.push('    timeout: 30m');
  if (stage.isSkipped) return [...lines, '    run: "true"'];
  const on = [...(stage.retriesLost ? ['lost'] : []), ...(stage.retriesFailure ? ['failure'] : [])];
  if (on.length > 0) lines.push(`    retry: { max: 6, delay: 1s, on: [${on.join(', ')}] }`);
  if (stage.allowFailure) lines.push('    allow_failure: true');
  if (stage.adds !== undefined) lines.push('    generates: true');
  if (stage.publishes === true) lines.push(`    outputs: [${OUTPUT}]`);
  lines.push('    run: |');
  for (const line of scriptOf(stage)) lines.push(`      ${line}`);
  for (let bytes = 0; bytes < stage.paddingBytes; bytes += PADDING.length + 7) lines.push(`      ${PADDING}`);
  return lines;
}

const PADDING = `# ${'-'.repeat(1_000)}`;

/** What a stage publishes. */
const OUTPUT = 'made';

/** Its runner's disk may be full; the marks are on another one. */
const ENDS_FULL = '{ mark full; exit 1; }';

/** The moment is taken before it is written: a mark is never later than what it tells of. */
function scriptOf(stage: StageDraft): string[] {
  const half = Math.floor(stage.lines / 2);
  return [
    `f="$MARKS/$PENSTOCK_RUN_ID.\${MARKS_NAME:-$PENSTOCK_STAGE}"; a=$PENSTOCK_ATTEMPT`,
    'mark() { t=$(date +%s%N); echo "$1 $a $t" >> "$f"; }',
    'say() { i=$1; while [ $i -le $2 ]; do echo "line $a $i"; i=$((i+1)); done; }',
    'mark start',
    `say 1 ${half}`,
    ...(stage.leavesDaemon ? ['setsid sh -c "sleep 600" >/dev/null 2>&1 &', '( sleep 600 & )'] : []),
    ...(stage.ticks > 0
      ? [`n=0; while [ $n -lt ${stage.ticks} ]; do sleep ${stage.tickSecs}; mark tick; n=$((n+1)); done`]
      : []),
    `say ${half + 1} ${stage.lines}`,
    ...(stage.adds === undefined ? [] : addingScript(stage)),
    ...(stage.failsUpTo > 0 ? [`[ $a -gt ${stage.failsUpTo} ] || { mark fail; exit 1; }`] : []),
    ...(stage.publishes === true ? [`echo "${OUTPUT}=$PENSTOCK_RUN_ID.$a" >> "$SERVICE_OUTPUT" || ${ENDS_FULL}`] : []),
    'mark end',
  ];
}

/** An attempt that fails afterwards has written its stages all the same. */
function addingScript(stage: StageDraft): string[] {
  return addedBy(stage, 0).flatMap((_, index) => {
    const added: StageDraft = { ...PLAIN, name: '', lines: ADDED_LINES, publishes: true };
    return [
      `cat >> "$SERVICE_STAGES" <<END || ${ENDS_FULL}`,
      `a$a-${index}:`,
      // The name of another, as a text that is added gives it.
      ...(index === FOLLOWING ? ['  after: a$a-0'] : []),
      `  outputs: [${OUTPUT}]`,
      '  timeout: 30m',
      '  retry: { max: 6, delay: 1s, on: [lost] }',
      // No name of a file has a slash.
      `  env: { MARKS_NAME: ${stage.name}+a$a-${index} }`,
      '  run: |',
      ...scriptOf(added).map((line) => `    ${line.replaceAll(/[\\$`]/g, (each) => `\\${each}`)}`),
      'END',
    ];
  });
}

function pickWeighted(random: Random, shapes: Shapes): Shape {
  const entries = Object.entries(shapes) as [Shape, number][];
  let left = random.next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [shape, weight] of entries) {
    left -= weight;
    if (left < 0) return shape;
  }
  return entries[0]?.[0] ?? 'quick';
}
