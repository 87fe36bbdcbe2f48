/** What a client says of a repository: which host's, and how it is called there. */
import { BadUserInput } from '@penstock/errors';
import type { ProviderName } from './provider.ts';
import { providerNamed } from './recognise.ts';

/** Two names or more, of what no host refuses in one. */
const REPOSITORY = /^[^\s/\p{Cc}]+(?:\/[^\s/\p{Cc}]+)+$/u;
const REPOSITORY_CHARACTERS_MAX = 300;

/** The host's name. @throws BadUserInput */
export function checkedNames(provider: string, repository: string): ProviderName {
  const known = providerNamed(provider);
  if (known === undefined) throw new BadUserInput("'provider' must be git_host_a or git_host_b.");
  if (!REPOSITORY.test(repository) || repository.length > REPOSITORY_CHARACTERS_MAX || !repository.isWellFormed())
    throw new BadUserInput("'repository' must be the full path of a repository, as in owner/name.");
  return known.name;
}
