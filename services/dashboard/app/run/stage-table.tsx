/** The stages as a table: what the graph says, for readers of another kind, and for runs of thousands of stages. */
import { Component, type JSX } from 'preact';
import { rowsIn, WHOLE_MAX } from '../parts/drawn-part.ts';
import { Name } from '../parts/name.tsx';
import { StatusWord } from '../parts/status.tsx';
import { Lasted } from '../parts/time.tsx';
import type { Run, Stage } from './stage-groups.ts';
import { useSeen } from '../parts/use-seen.ts';

interface Props {
  readonly run: Pick<Run, 'stages'>;
  readonly chosen: string | null;
  onChoose(stage: string): void;
}

/** Of a table too long to be drawn whole; `.stage-table.even` in run.css has it. */
const ROW_HEIGHT = 34;

export function StageTable({ run, chosen, onChoose }: Props): JSX.Element {
  const { box, seen, onScroll } = useSeen();
  const { from, to, above, below } = rowsIn(seen, run.stages.length, ROW_HEIGHT);
  const isLong = run.stages.length > WHOLE_MAX;
  return (
    <div
      ref={box}
      class="table-frame"
      tabIndex={0}
      role="group"
      aria-label="Table of the stages"
      onScroll={isLong ? onScroll : undefined}
    >
      <table class={isLong ? 'stage-table even' : 'stage-table'} aria-rowcount={run.stages.length + 1}>
        <thead>
          <tr>
            <th scope="col">Stage</th>
            <th scope="col">Status</th>
            <th scope="col">Why</th>
            <th scope="col">After</th>
            <th scope="col">Took</th>
          </tr>
        </thead>
        <tbody>
          {above > 0 && <Left height={above} />}
          {run.stages.slice(from, to).map((stage, index) => (
            <Row
              key={stage.name}
              stage={stage}
              place={from + index + 2}
              isChosen={stage.name === chosen}
              onChoose={onChoose}
            />
          ))}
          {below > 0 && <Left height={below} />}
        </tbody>
      </table>
    </div>
  );
}

/** In the place of rows that are not drawn. */
function Left({ height }: { readonly height: number }): JSX.Element {
  return (
    <tr class="left-out" aria-hidden="true">
      <td colSpan={5} style={{ height: `${height}px` }} />
    </tr>
  );
}

interface RowProps {
  readonly stage: Stage;
  /** In the whole table; the heading is 1. */
  readonly place: number;
  readonly isChosen: boolean;
  onChoose(stage: string): void;
}

/** One of thousands: it is drawn anew only where something of it has changed. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    return (
      next.isChosen !== this.props.isChosen ||
      next.place !== this.props.place ||
      JSON.stringify(next.stage) !== JSON.stringify(this.props.stage)
    );
  }

  override render({ stage, place, isChosen, onChoose }: RowProps): JSX.Element {
    return (
      <tr class={isChosen ? 'chosen' : ''} aria-rowindex={place}>
        <th scope="row">
          <button type="button" class="link" aria-pressed={isChosen} onClick={() => onChoose(stage.name)}>
            <Name text={stage.name} />
          </button>
        </th>
        <td>
          <StatusWord status={stage.status} />
        </td>
        <td>{stage.reason ?? stage.waitingOn[0]?.kind ?? ''}</td>
        <td>
          <Name text={(stage.after ?? []).slice(0, 3).join(', ')} />
          {(stage.after?.length ?? 0) > 3 ? ' …' : ''}
        </td>
        <td>
          <Lasted from={stage.startedAt} to={stage.finishedAt} />
        </td>
      </tr>
    );
  }
}
