/** `penstock admin suspend|unsuspend|delete-user <login>` and `suspended`: who may use the installation at all. */
import { printableText } from '../../output/printable-text.ts';
import { cellOf } from '../../server/answered-cell.ts';
import { fieldAnswered } from '../../server/graphql.ts';
import { fieldOf } from '../../server/json.ts';
import { printList, type Listing } from '../../server/list-action.ts';
import type { NamedAction } from '../../server/named-actions.ts';
import { sinceOf } from './times.ts';

const COLUMNS = ['SINCE', 'LOGIN', 'BY', 'ID'].map((title) => ({ title }));

export const suspended: NamedAction = async (client, _name, args, { terminal }) => {
  const now = Date.now();
  const listing: Listing = {
    field: 'suspendedUsers',
    query: 'query { suspendedUsers { id login suspendedBy suspendedAt } }',
    what: 'suspended users',
    none: 'penstock: nobody is suspended.',
    columns: COLUMNS,
    row: (entry) => [
      sinceOf(cellOf(entry, 'suspendedAt'), now),
      ...['login', 'suspendedBy', 'id'].map((field) => cellOf(entry, field)),
    ],
  };
  await printList(client, listing, args, { terminal });
};

export const suspend: NamedAction = async (client, login, args, { terminal }) => {
  const query = 'mutation ($login: String) { suspendUser(login: $login) { id login suspendedBy suspendedAt } }';
  const user = await fieldAnswered(client, query, { login }, 'suspendUser');
  if (args.flag('json')) {
    terminal.print(`${JSON.stringify(user)}\n`);
    return;
  }
  const id = printableText(cellOf(user, 'id'));
  terminal.note(
    `${printableText(login)} is shut out; what runs goes on, and 'penstock admin pause --key user/${id}' holds it.`,
  );
};

export const unsuspend: NamedAction = async (client, login, args, { terminal }) => {
  const query = 'mutation ($login: String) { unsuspendUser(login: $login) }';
  const lifted = await fieldAnswered(client, query, { login }, 'unsuspendUser');
  if (args.flag('json')) terminal.print(`${JSON.stringify({ lifted })}\n`);
  else
    terminal.note(
      lifted === true ? `${printableText(login)} is let in again.` : `${printableText(login)} was not suspended.`,
    );
};

/** Each as it is answered, and as it is told. */
const COUNTED = [
  ['identities', 'accounts at identity providers'],
  ['sessions', 'sessions'],
  ['tokens', 'personal tokens'],
  ['secrets', 'secrets'],
  ['repositories', 'connected repositories'],
  ['hooks', 'webhooks'],
  ['extensionKeys', 'keys for extensions'],
  ['grantsGiven', 'times that others were let in'],
  ['grantsReceived', 'times that others had let the user in'],
] as const;

function countOf(receipt: unknown, field: string): string {
  const count = fieldOf(receipt, field);
  return typeof count === 'number' ? String(count) : '-';
}

export const deleteUser: NamedAction = async (client, login, args, { terminal }) => {
  const fields = COUNTED.map(([field]) => field).join(' ');
  const query = `mutation ($login: String) { deleteUser(login: $login) { id login ${fields} } }`;
  const receipt = await fieldAnswered(client, query, { login }, 'deleteUser');
  if (args.flag('json')) {
    terminal.print(`${JSON.stringify(receipt)}\n`);
    return;
  }
  const lines = COUNTED.map(([field, what]) => `${countOf(receipt, field).padStart(6)}  ${what}\n`).join('');
  terminal.print(lines);
  terminal.note(
    `${printableText(login)} (${printableText(cellOf(receipt, 'id'))}) is deleted, with all of these; runs stay, with their logs and files.`,
  );
};
