/** What the file would run, as the server reads it: the last one that was in order, while one types. */
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
import type { Operations } from '../api/operations.ts';
import { StageGraph } from '../run/stage-graph.tsx';

type Planned = Operations['Validate']['data']['validatePipeline']['stages'];

/** A picture of more says nothing. */
const STAGES_MAX = 300;

interface Props {
  /** Null: the file has mistakes, or was not read yet. */
  readonly stages: Planned | null;
  /** By its name in the file: that of a matrix is of all of its stages. */
  onChoose(name: string): void;
}

export function PlanPreview({ stages, onChoose }: Props): JSX.Element | null {
  const last = useRef<Planned | null>(null);
  if (stages !== null) last.current = stages;
  const shown = last.current;
  if (shown === null) return null;
  const run = {
    finishedAt: null,
    stages: shown.map(({ name, after }) => ({
      name,
      after,
      status: 'PENDING' as const,
      startedAt: null,
      finishedAt: null,
    })),
  };
  return (
    <section class={stages === null ? 'preview is-old' : 'preview'} aria-label="What it would run">
      <h2>
        What it would run: {shown.length.toLocaleString()} {shown.length === 1 ? 'stage' : 'stages'}
        {stages === null ? ' before the mistake' : ''}
      </h2>
      {shown.length > STAGES_MAX ? (
        <p class="faint">Too many to be drawn.</p>
      ) : (
        <StageGraph run={run} chosen={null} isPlan onChoose={(name) => onChoose(name.replace(/ \(.*\)$/u, ''))} />
      )}
    </section>
  );
}
