/** What a secret may be called, hold and be bound to; each function throws `BadUserInput` with the remedy. */
import type { SecretScope } from '@penstock/identity';
import { BadUserInput } from '@penstock/errors';
import { isPlainName } from '@penstock/pipeline';
import { SERVICE_TENANT } from '@penstock/run';

const NAME = /^[A-Z_][A-Z0-9_]*$/;
const NAME_LENGTH_MAX = 100;
const VALUE_BYTES_MAX = 64 * 1024;
/** A shorter one cannot be masked: it would stand in most logs by chance. */
const VALUE_CHARACTERS_MIN = 4;
const SCOPE_LENGTH_MAX = 400;
const PROVIDERS = ['git_host_a', 'git_host_b'];
const REPOSITORY = /^[a-z0-9_-]+\/[^\s/]+(?:\/[^\s/]+)+$/i;
const REFS_MAX = 20;
const REF_LENGTH_MAX = 255;

export function checkName(name: string): void {
  if (NAME.test(name) && name.length <= NAME_LENGTH_MAX) return;
  throw new BadUserInput(
    `A secret is called by capital letters, digits and '_', no digit first, at most ${NAME_LENGTH_MAX} of them, such as NPM_TOKEN.`,
    { field: 'name' },
  );
}

/** What is wrong is said without the value. */
export function checkValue(value: string): void {
  const fault = valueFault(value);
  if (fault !== undefined) throw new BadUserInput(fault, { field: 'value' });
}

function valueFault(value: string): string | undefined {
  if (!value.isWellFormed()) return 'The value is no text: a secret that is bytes has to be given as base64.';
  if (value.includes('\0'))
    return 'The value holds a NUL, which no variable can hold: a secret that is bytes has to be given as base64.';
  if (Buffer.byteLength(value) > VALUE_BYTES_MAX) return `A secret has at most ${VALUE_BYTES_MAX} bytes.`;
  if ([...value.trim()].length < VALUE_CHARACTERS_MIN)
    return `A secret has at least ${VALUE_CHARACTERS_MIN} characters that are no blanks: a shorter one could not be masked in logs.`;
  return undefined;
}

/** Strangers share the tenant of the API key: a secret of it is for one repository, or for one pipeline. */
export function checkScope({ tenant, repository, pipeline }: SecretScope): void {
  if (tenant === SERVICE_TENANT && repository === undefined && pipeline === undefined)
    throw new BadUserInput("With the API key a secret needs 'repository' or 'pipeline': say what it is for.", {
      field: 'repository',
    });
  if (repository !== undefined && (!REPOSITORY.test(repository) || isUnshowable(repository)))
    throw new BadUserInput(
      "'repository' is the provider and the path, as runs show them, such as git_host_a/acme/shop.",
      { field: 'repository' },
    );
  if (pipeline !== undefined && (isUnshowable(pipeline) || !isPlainName(pipeline)))
    throw new BadUserInput(
      `'pipeline' is the name of a pipeline, at most ${SCOPE_LENGTH_MAX} visible characters on one line.`,
      {
        field: 'pipeline',
      },
    );
}

/** Of a new one: nobody is ever given that of a provider that there is not. What was set is deleted as it was named. */
export function checkProvider({ repository }: Pick<SecretScope, 'repository'>): void {
  if (repository === undefined) return;
  const [named = ''] = repository.split('/', 1);
  // In whatever letters: what it is compared with later has none of its own (isSame).
  if (PROVIDERS.includes(named.toLowerCase())) return;
  throw new BadUserInput(`There is no provider '${named}': 'repository' begins with ${PROVIDERS.join('/ or ')}/.`, {
    field: 'repository',
  });
}

export function checkRefs(refs: readonly string[] | undefined): void {
  if (refs === undefined) return;
  if (refs.length === 0 || refs.length > REFS_MAX)
    throw new BadUserInput(`'refs' has 1 to ${REFS_MAX} patterns; leave it out for any ref.`, { field: 'refs' });
  const bad = refs.find((ref) => ref === '' || ref.length > REF_LENGTH_MAX || isUnshowable(ref));
  if (bad !== undefined)
    throw new BadUserInput(
      `A pattern of 'refs' has 1 to ${REF_LENGTH_MAX} characters on one line, such as main or refs/tags/v*.`,
      { field: 'refs' },
    );
}

function isUnshowable(text: string): boolean {
  return text.length > SCOPE_LENGTH_MAX || !text.isWellFormed() || /\p{Cc}/u.test(text);
}
