/** The stages as a graph: who comes after whom, live; matrices folded; the path that has decided how long it took. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { Name } from '../parts/name.tsx';
import { StatusSign } from '../parts/status.tsx';
import { WHOLE_MAX } from '../parts/drawn-part.ts';
import { isSeen, layOut, NODE, pathOf, type Edge } from './graph-layout.ts';
import { Lasted } from '../parts/time.tsx';
import { criticalPath, nodesOf, type Drawn, type Node } from './stage-groups.ts';
import { useSeen } from '../parts/use-seen.ts';

interface Props {
  readonly run: { readonly stages: readonly Drawn[]; readonly finishedAt: string | null };
  readonly chosen: string | null;
  /** Where nothing of it has run, no sign says of a stage how it stands. */
  readonly isPlan?: boolean;
  onChoose(stage: string): void;
}

export function StageGraph({ run, chosen, isPlan = false, onChoose }: Props): JSX.Element {
  const unfolded = useSignal<ReadonlySet<string>>(new Set());
  const nodes = useMemo(() => nodesOf(run.stages, unfolded.value), [run, unfolded.value]);
  const shape = nodes.map(({ name, after }) => `${name}\0${after.join('\0')}`).join('\u0001');
  // A state that changes moves nothing.
  const laidOut = useMemo(() => layOut(nodes), [shape]);
  const critical = useMemo(() => (run.finishedAt === null ? new Set<string>() : criticalPath(run.stages)), [run]);
  const isCritical = ({ stages }: Node): boolean => stages.some(({ name }) => critical.has(name));
  const { box, seen, onScroll } = useSeen();
  const isLong = nodes.length > WHOLE_MAX;
  const isDrawn = (node: Node): boolean => {
    const at = laidOut.places.get(node.name);
    return !isLong || (at !== undefined && isSeen(seen, at, { x: at.x + NODE.width, y: at.y + NODE.height }));
  };
  const criticalNodes = new Set(nodes.filter(isCritical).map(({ name }) => name));
  const isCriticalEdge = ({ from, to }: Edge): boolean => criticalNodes.has(from) && criticalNodes.has(to);
  const drawn = isLong ? laidOut.edges.filter(({ begin, end }) => isSeen(seen, begin, end)) : laidOut.edges;
  return (
    <div
      ref={box}
      class="graph"
      role="group"
      aria-label="Graph of the stages"
      tabIndex={0}
      onScroll={isLong ? onScroll : undefined}
    >
      <div class="graph-field" style={{ width: `${laidOut.width}px`, height: `${laidOut.height}px` }}>
        <svg width={laidOut.width} height={laidOut.height} aria-hidden="true">
          {/* Thousands of edges are one line with many beginnings. */}
          <path
            d={drawn
              .filter((edge) => !isCriticalEdge(edge))
              .map(pathOf)
              .join('')}
            class="edge"
          />
          <path d={drawn.filter(isCriticalEdge).map(pathOf).join('')} class="edge critical" />
        </svg>
        {nodes.filter(isDrawn).map((node) => {
          const at = laidOut.places.get(node.name);
          const isChosen = node.stages.some(({ name }) => name === chosen);
          return (
            <button
              type="button"
              key={node.name}
              class={`node is-${node.status.toLowerCase()}${isChosen ? ' chosen' : ''}${isCritical(node) ? ' critical' : ''}`}
              style={{
                left: `${at?.x ?? 0}px`,
                top: `${at?.y ?? 0}px`,
                width: `${NODE.width}px`,
                height: `${NODE.height}px`,
              }}
              aria-pressed={isChosen}
              onClick={() => {
                if (node.isFolded) unfolded.value = new Set([...unfolded.value, node.name]);
                else onChoose(node.name);
              }}
            >
              {isPlan ? null : <StatusSign status={node.status} />}
              <span class="node-name">
                <Name text={node.name} />
              </span>
              {node.isFolded ? <Folded node={node} isPlan={isPlan} /> : <NodeTime node={node} />}
            </button>
          );
        })}
      </div>
    </div>
  );
}

function Folded({ node, isPlan }: { readonly node: Node; readonly isPlan: boolean }): JSX.Element {
  const over = node.stages.filter(({ finishedAt, status }) => finishedAt !== null || status === 'SKIPPED').length;
  return (
    <span class="node-count" title="Show all of them">
      {isPlan ? '' : `${over}/`}
      {node.stages.length}
    </span>
  );
}

function NodeTime({ node }: { readonly node: Node }): JSX.Element | null {
  const [stage] = node.stages;
  return stage === undefined ? null : (
    <span class="node-time">
      <Lasted from={stage.startedAt} to={stage.finishedAt} />
    </span>
  );
}
