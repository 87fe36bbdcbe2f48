/**
 * Whose runs somebody reads: a list of texts, each a tenant, or one repository of a tenant where its people let somebody else in.
 *
 * REACH-1 The text of a repository is no tenant's: whoever compares it with one finds that they differ, and shows nothing.
 */
import type { RunView } from './state.ts';

export interface RepositoryReach {
  readonly tenant: string;
  readonly provider: string;
  readonly repository: string;
}

/** No tenant, provider or repository has one in its name. */
const SEPARATOR = '\n';

export function reachOf({ tenant, provider, repository }: RepositoryReach): string {
  return [tenant, provider, repository].join(SEPARATOR);
}

/** Null: it is a tenant. */
export function repositoryOfReach(reach: string): RepositoryReach | null {
  const [tenant = '', provider, repository] = reach.split(SEPARATOR);
  return provider === undefined || repository === undefined ? null : { tenant, provider, repository };
}

/** The tenants that it is about, each once. */
export function tenantsOfReaches(reaches: readonly string[]): readonly string[] {
  return [...new Set(reaches.map((reach) => repositoryOfReach(reach)?.tenant ?? reach))];
}

export function isReached(
  reaches: readonly string[],
  run: Pick<RunView, 'tenant' | 'provider' | 'repository'>,
): boolean {
  return reaches.some((reach) => {
    const repository = repositoryOfReach(reach);
    if (repository === null) return reach === run.tenant;
    return (
      repository.tenant === run.tenant &&
      repository.provider === run.provider &&
      repository.repository.toLowerCase() === run.repository?.toLowerCase()
    );
  });
}
