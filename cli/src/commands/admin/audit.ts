/** `penstock admin audit`: who did what, or was refused it. */
import { UsageError } from '../../process/errors.ts';
import { printableText } from '../../output/printable-text.ts';
import { cellOf } from '../../server/answered-cell.ts';
import { printList, type Listing } from '../../server/list-action.ts';
import type { NamedAction } from '../../server/named-actions.ts';
import { timeGiven } from './times.ts';

const COLUMNS = ['AT', 'WHO', 'DID', 'TO', 'OUTCOME', 'FROM'].map((title) => ({ title }));
const LIMIT = { default: 50, max: 1_000 };

export const audit: NamedAction = async (client, _name, args, { terminal }) => {
  const text = args.text('limit');
  const limit = text === undefined ? LIMIT.default : Number(text);
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > LIMIT.max)
    throw new UsageError(`--limit is '${printableText(text ?? '')}': give a number from 1 to ${LIMIT.max}`, 'admin');
  const from = args.text('since');
  const since = from === undefined ? undefined : timeGiven(from, Date.now());
  const query =
    'query ($limit: Int, $since: String) { auditLog(limit: $limit, since: $since) { at actor action target outcome ip } }';
  const listing: Listing = {
    field: 'auditLog',
    query,
    variables: { limit, since },
    what: 'audit entries',
    none: 'penstock: nothing was recorded.',
    columns: COLUMNS,
    row: (entry) => [
      cellOf(entry, 'at')
        .replace('T', ' ')
        .replace(/\.\d+Z$/, 'Z'),
      ...['actor', 'action', 'target', 'outcome', 'ip'].map((field) => cellOf(entry, field)),
    ],
  };
  const shown = await printList(client, listing, args, { terminal });
  if (shown.length === limit) terminal.note('penstock: there may be more; ask for them with a higher --limit.');
};
