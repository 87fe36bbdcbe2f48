/** Actions that list what a server has: a table, a sentence where there is nothing, or JSON. */
import type { CommandContext, ParsedArguments } from '../command-line/command.ts';
import { tableLines } from '../output/table.ts';
import { ServerUnreached } from '../process/errors.ts';
import { fieldAnswered } from './graphql.ts';
import type { ServerClient } from './http-client.ts';

export interface Listing {
  /** The query's top-level field. */
  readonly field: string;
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  /** What is listed, as a word of a sentence. */
  readonly what: string;
  /** Said where there is none. */
  readonly none: string;
  readonly columns: Parameters<typeof tableLines>[0];
  readonly row: (entry: unknown) => readonly string[];
}

/** What was printed as a table; empty where it was not. Throws what a request throws. */
export async function printList(
  client: ServerClient,
  { field, query, variables = {}, what, none, columns, row }: Listing,
  args: ParsedArguments,
  { terminal }: Pick<CommandContext, 'terminal'>,
): Promise<readonly unknown[]> {
  const entries = await fieldAnswered(client, query, variables, field);
  if (!Array.isArray(entries))
    throw new ServerUnreached(`${client.server.base} lists no ${what}: is it a Penstock server?`);
  if (args.flag('json')) {
    terminal.print(`${JSON.stringify(entries)}\n`);
    return [];
  }
  if (entries.length === 0) terminal.note(none);
  else for (const line of tableLines(columns, entries.map(row))) terminal.print(`${line}\n`);
  return entries;
}
