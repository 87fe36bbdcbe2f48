/** The file of a repository, asked of the webhook ingest, which knows whose repositories are. */
import type { Bus, FileRequest, RepositoryFile } from '@penstock/bus';
import { BadUserInput } from '@penstock/errors';
import type { Caller } from '@penstock/identity';
import { callService } from '@penstock/service';
import type { DispatchArguments } from './trigger.ts';

/** A large repository may have to be fetched. */
const FILE_MS_MAX = 120_000;

export async function repositoryFile(
  bus: Bus,
  caller: Caller,
  { provider, repository, ref }: DispatchArguments,
): Promise<RepositoryFile> {
  const request: FileRequest = {
    ...(caller.user === undefined ? {} : { userId: caller.user.id }),
    provider: needed(provider, 'provider'),
    repository: needed(repository, 'repository'),
    ref: needed(ref, 'ref'),
  };
  return await callService<FileRequest, RepositoryFile>(
    bus,
    'webhook-ingest',
    'file',
    request,
    FILE_MS_MAX,
    FILE_MS_MAX,
  );
}

function needed(value: string | null | undefined, name: string): string {
  if (value === null || value === undefined) throw new BadUserInput(`The argument '${name}' is missing.`);
  return value.toWellFormed();
}
