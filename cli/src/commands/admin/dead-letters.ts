/** `penstock admin dead-letters`: what was given up; `redrive <id>` sends one of it again. */
import { printableText } from '../../output/printable-text.ts';
import { cellOf } from '../../server/answered-cell.ts';
import { fieldAnswered } from '../../server/graphql.ts';
import { printList, type Listing } from '../../server/list-action.ts';
import type { NamedAction } from '../../server/named-actions.ts';
import { sinceOf } from './times.ts';

const COLUMNS = ['GIVEN UP', 'TENANT', 'EVENT', 'RUN', 'TRIES', 'TO', 'WHY', 'ID'].map((title) => ({ title }));

export const deadLetters: NamedAction = async (client, _name, args, { terminal }) => {
  const now = Date.now();
  const listing: Listing = {
    field: 'adminDeadLetters',
    query:
      'query { adminDeadLetters(limit: 1000) { id hook tenant url event runId attempts createdAt endedAt error } }',
    what: 'dead letters',
    none: 'penstock: nothing was given up in the last 7 days.',
    columns: COLUMNS,
    row: (entry) => [
      sinceOf(cellOf(entry, 'endedAt'), now),
      ...['tenant', 'event', 'runId', 'attempts', 'url', 'error', 'id'].map((field) => cellOf(entry, field)),
    ],
  };
  await printList(client, listing, args, { terminal });
};

export const redrive: NamedAction = async (client, id, args, { terminal }) => {
  await fieldAnswered(client, 'mutation ($id: String) { adminRedrive(id: $id) }', { id }, 'adminRedrive');
  if (args.flag('json')) terminal.print(`${JSON.stringify({ id })}\n`);
  else terminal.note(`${printableText(id)} is sent again; 'penstock admin dead-letters' has it if nobody takes it.`);
};
