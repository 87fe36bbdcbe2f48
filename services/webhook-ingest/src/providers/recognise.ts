/** Which host a request comes from, by its headers alone. */
import type { IncomingHttpHeaders } from 'node:http';
import { BadUserInput } from '@penstock/errors';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import type { Provider } from './provider.ts';

const PROVIDERS: readonly Provider[] = [github, gitlab];

/** Throws `BadUserInput` where no host, or more than one, claims the request. */
export function recognise(headers: IncomingHttpHeaders): { readonly provider: Provider; readonly event: string } {
  let claim: { readonly provider: Provider; readonly event: string } | undefined;
  for (const provider of PROVIDERS) {
    const event = provider.eventOf(headers);
    if (event === undefined) continue;
    if (claim !== undefined) throw new BadUserInput('The headers claim two git hosts at once.');
    claim = { provider, event };
  }
  if (claim === undefined)
    throw new BadUserInput(
      'This is no delivery of a git host that is known here: the header that names the event is missing.',
    );
  return claim;
}

/** Whether the request brings a signature or a token, right or wrong. */
export function isSigned(headers: IncomingHttpHeaders): boolean {
  return PROVIDERS.some((provider) => provider.proofOf(headers) !== undefined);
}

export function providerNamed(name: string): Provider | undefined {
  return PROVIDERS.find((provider) => provider.name === name);
}
