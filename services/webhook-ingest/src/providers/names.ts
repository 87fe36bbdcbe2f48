/** What a client says of a repository: which host's, how it is called there, and what it is read with. */
import { BadUserInput } from '@penstock/errors';
import { isSecretName } from '@penstock/pipeline';
import type { ProviderName } from './provider.ts';
import { providerNamed } from './recognise.ts';

/** Two names or more, of what no host refuses in one; none is a step in a path. */
const REPOSITORY = /^(?!(?:.*\/)?\.\.?(?:\/|$))[^\s/\p{Cc}]+(?:\/[^\s/\p{Cc}]+)+$/u;
const REPOSITORY_CHARACTERS_MAX = 300;

/** The host's name. @throws BadUserInput */
export function checkedNames(provider: string, repository: string): ProviderName {
  const known = providerNamed(provider);
  if (known === undefined) throw new BadUserInput("'provider' must be git_host_a or git_host_b.");
  if (!REPOSITORY.test(repository) || repository.length > REPOSITORY_CHARACTERS_MAX || !repository.isWellFormed())
    throw new BadUserInput("'repository' must be the full path of a repository, as in owner/name.");
  return known.name;
}

/** `field`: what the client calls it. @throws BadUserInput */
export function checkedSecretName(field: string, name: string): string {
  if (isSecretName(name)) return name;
  throw new BadUserInput(
    `'${field}' is the name of a secret, as penstock secret set takes it, such as CLONE_TOKEN; its value stands nowhere else.`,
    { field },
  );
}
