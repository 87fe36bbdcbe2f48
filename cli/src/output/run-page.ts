/** A run as `penstock status` shows it: which one it is, its stages as a graph, and how it stands. */
import type { Painter } from './painter.ts';
import { fitText, printableText, wrapped } from './printable-text.ts';
import { graphLines, type GraphStage } from './run-graph.ts';
import { durationText, reasonText } from './stage-tally.ts';
import { statusColor } from './status-colors.ts';
import type { ShownRun, ShownStage } from './shown-run.ts';

export interface PageSize {
  readonly columns?: number | undefined;
  /** A page that is drawn over and over has to stay on the screen: of more stages those that are under way are shown. */
  readonly rows?: number | undefined;
}

export function runPage(
  run: ShownRun,
  nowMs: number,
  paint: Painter,
  { columns = Infinity, rows }: PageSize,
): string[] {
  const head = [`Run ${run.id}`, ...headOf(run)].flatMap((line) => wrapped(line, columns));
  const foot = wrapped(footOf(run, nowMs), columns);
  foot[0] = foot[0]?.replace(run.status, paint(statusColor(run.status), run.status)) ?? '';
  const graph = graphLines(
    run.stages.map((stage) => graphStage(stage, nowMs)),
    paint,
    columns,
  );
  const room = rows === undefined ? Infinity : Math.max(1, rows - head.length - foot.length - 3);
  const stages = graph.length <= room ? graph : underWay(run, room, nowMs, paint, columns);
  return [...head, '', ...stages, ...(stages.length === 0 ? [] : ['']), ...foot];
}

function headOf({ pipelineName, repository, ref, commit, startedAt }: ShownRun): string[] {
  const origin = [repository, ref?.replace(/^refs\/(heads|tags)\//u, ''), commit?.slice(0, 12)].filter(
    (part) => part !== null && part !== undefined && part !== '',
  );
  return [
    `Pipeline ${printableText(pipelineName)}, started ${printableText(startedAt.replace('T', ' ').replace(/\.\d+Z$/u, 'Z'))}`,
    ...(origin.length === 0 ? [] : [printableText(origin.join(' '))]),
  ];
}

function footOf(run: ShownRun, nowMs: number): string {
  const started = Date.parse(run.startedAt);
  const time =
    run.finishedAt === null
      ? `for ${durationText(nowMs - started)}`
      : `in ${durationText(Date.parse(run.finishedAt) - started)}`;
  const why = run.outcome === null ? run.reason : `${run.outcome}${run.reason === null ? '' : `, ${run.reason}`}`;
  const counts = COUNTED.flatMap(([word, ...statuses]) => {
    const count = run.stages.filter(({ status }) => statuses.includes(status)).length;
    return count === 0 ? [] : [`${count} ${word}`];
  });
  return [
    `${run.status} ${time}`,
    counts.length === 0 ? '' : `: ${counts.join(', ')}`,
    why === null ? '' : ` (${printableText(why)})`,
  ].join('');
}

const COUNTED: readonly (readonly [word: string, ...statuses: string[]])[] = [
  ['passed', 'SUCCESS'],
  ['failed', 'FAILED'],
  ['skipped', 'SKIPPED'],
  ['cancelled', 'CANCELLED'],
  ['running', 'RUNNING'],
  ['waiting', 'PENDING', 'QUEUED'],
];

function graphStage(
  { name, status, startedAt, finishedAt, reason, attempt, exitCode, after }: ShownStage,
  nowMs: number,
): GraphStage {
  const time =
    startedAt === null
      ? '-'
      : durationText((finishedAt === null ? nowMs : Date.parse(finishedAt)) - Date.parse(startedAt));
  const why = status === 'SUCCESS' || reason === null ? '' : printableText(reasonText(reason, exitCode ?? undefined));
  const attempts = attempt > 1 ? `attempt ${attempt}` : '';
  return { name, status, time, remark: [why, attempts].filter((part) => part !== '').join(', '), after };
}

function underWay(run: ShownRun, room: number, nowMs: number, paint: Painter, columns: number): string[] {
  const order = ['FAILED', 'RUNNING', 'QUEUED', 'PENDING', 'CANCELLED', 'SKIPPED', 'SUCCESS'];
  const chosen = run.stages
    .toSorted((a, b) => order.indexOf(a.status) - order.indexOf(b.status))
    .slice(0, Math.max(0, room - 1))
    .map((stage) => ({ ...graphStage(stage, nowMs), after: [] }));
  const lines = graphLines(chosen, paint, columns).slice(0, Math.max(0, room - 1));
  return [...lines, fitText(`and ${run.stages.length - chosen.length} more stages`, Math.min(columns, 40)).trimEnd()];
}
