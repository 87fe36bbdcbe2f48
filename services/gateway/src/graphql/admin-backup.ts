/** Backups, for operators: begun by one operation, looked after by another, since gigabytes take minutes. */
import { isAbsolute } from 'node:path';
import { BadUserInput } from '@penstock/errors';
import { actorOf, requireAdministrator } from '@penstock/identity';
import { isoTime } from '@penstock/run';
import type { AuditLog } from '@penstock/store';
import type { Backups, BackupState } from '../admin/backups.ts';
import { given, type GraphqlContext, type Maybe } from './arguments.ts';
import type { GraphqlModule } from './graphql-module.ts';

export interface AdminBackupModuleOptions {
  readonly backups: Backups | undefined;
  readonly audit: AuditLog;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const FOLDER_LENGTH_MAX = 1_000;

const SDL = /* GraphQL */ `
  "A copy of the whole installation (additional)."
  type AdminBackup {
    "On the server's machine."
    folder: String!
    startedAt: String!
    "Null: it is still being made."
    finishedAt: String
    "Null while it is being made, and where it failed."
    files: Int
    bytes: Float
    "What is not in it."
    notes: [String!]!
    "Why it failed; nothing is left of it then. Null: it did not."
    problem: String
  }

  extend type Query {
    "The last backup that was asked for since the server was started. For administrators (additional)."
    adminBackupState: AdminBackup
  }

  extend type Mutation {
    """
    Begins to copy the whole installation into that folder of the server's machine, which is empty or not there yet; everything goes on
    meanwhile. Answers at once: 'adminBackupState' says when it is whole. For administrators, where one process has everything (additional).
    """
    adminBackup(folder: String): AdminBackup!
  }
`;

export function adminBackupModule({ backups, audit, now }: AdminBackupModuleOptions): GraphqlModule {
  return {
    sdl: SDL,
    resolvers: {
      Query: {
        adminBackupState: (_: unknown, _args: unknown, { caller }: GraphqlContext) => {
          requireAdministrator(caller);
          const last = backups?.last() ?? null;
          return last === null ? null : shown(last);
        },
      },
      Mutation: {
        adminBackup: (_: unknown, args: { readonly folder?: Maybe<string> }, { caller, address }: GraphqlContext) => {
          requireAdministrator(caller);
          const folder = given(args.folder, 'folder');
          if (!isAbsolute(folder) || folder.length > FOLDER_LENGTH_MAX || folder.includes('\0'))
            throw new BadUserInput("'folder' is to be the whole path of a folder on the server's machine, from / on.");
          if (backups === undefined)
            throw new BadUserInput(
              'This server cannot copy everything: its database or its broker is not its own. docs/operating.md (Back up and restore) says what to copy with which tool.',
            );
          const begun = backups.begin(folder);
          audit.record({
            at: now(),
            actor: actorOf(caller),
            action: 'admin.backup',
            target: folder,
            outcome: 'ok',
            ip: address,
          });
          return shown(begun);
        },
      },
    },
  };
}

function shown({ startedAt, finishedAt, files, bytes, notes, problem, folder }: BackupState): object {
  return {
    folder,
    startedAt: isoTime(startedAt),
    finishedAt: finishedAt === undefined ? null : isoTime(finishedAt),
    files: files ?? null,
    bytes: bytes ?? null,
    notes: notes ?? [],
    problem: problem ?? null,
  };
}
