/** The stages as a table: what the graph says, for readers of another kind, and for runs of thousands of stages. */
import { Component, type JSX } from 'preact';
import { Name } from '../parts/name.tsx';
import { StatusWord } from '../parts/status.tsx';
import { Lasted } from '../parts/time.tsx';
import type { Run, Stage } from './stage-groups.ts';

interface Props {
  readonly run: Pick<Run, 'stages'>;
  readonly chosen: string | null;
  onChoose(stage: string): void;
}

export function StageTable({ run, chosen, onChoose }: Props): JSX.Element {
  return (
    <div class="table-frame" tabIndex={0} role="group" aria-label="Table of the stages">
      <table class="stage-table">
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
          {run.stages.map((stage) => (
            <Row key={stage.name} stage={stage} isChosen={stage.name === chosen} onChoose={onChoose} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  readonly stage: Stage;
  readonly isChosen: boolean;
  onChoose(stage: string): void;
}

/** One of thousands: it is drawn anew only where something of it has changed. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    return next.isChosen !== this.props.isChosen || JSON.stringify(next.stage) !== JSON.stringify(this.props.stage);
  }

  override render({ stage, isChosen, onChoose }: RowProps): JSX.Element {
    return (
      <tr class={isChosen ? 'chosen' : ''}>
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
