/** How much the parts of a draft weigh in the budget of an expansion: about the characters that a definition has of them. */
import type { Environment } from './environment.ts';
import type { ExpansionBudget } from './expansion-budget.ts';
import type { PlaceDraft } from './place.ts';
import type { ApprovalDefinition } from '../model/approval.ts';
import type { CacheDefinition } from '../model/cache.ts';
import type { ArtifactsDefinition } from '../model/kept-files.ts';
import type { Template } from '../model/definition.ts';

type Texts = Pick<ExpansionBudget, 'sizeOfTemplate'>;

/** What a service counts for beside its variables. */
const PLACE_SIZE = 600;
/** What a cache counts for beside its texts. */
const CACHE_SIZE = 200;
/** What an approver, or a stage whose files are wanted, counts for beside the name. */
const NAME_SIZE = 3;

export function sizeOfEnvironment(texts: Texts, env: Environment): number {
  let size = 0;
  for (const [name, template] of env) size += name.length + texts.sizeOfTemplate(template);
  return size;
}

export function sizeOfCaches(texts: Texts, caches: readonly CacheDefinition<Template>[] = []): number {
  return caches.reduce(
    (sum, { key, paths, restore }) =>
      sum +
      [key, ...restore].reduce((size, text) => size + texts.sizeOfTemplate(text), CACHE_SIZE) +
      paths.reduce((size, path) => size + path.length, 0),
    0,
  );
}

export function sizeOfPlace(texts: Texts, { services = [] }: PlaceDraft): number {
  return services.reduce(
    (sum, { env, ready = '' }) => sum + sizeOfEnvironment(texts, env) + ready.length + PLACE_SIZE,
    0,
  );
}

export function sizeOfApproval(texts: Texts, approval: ApprovalDefinition<Template> | undefined): number {
  if (approval === undefined) return 0;
  const { approvers = [], message = [] } = approval;
  return approvers.reduce((sum, name) => sum + name.length + NAME_SIZE, texts.sizeOfTemplate(message));
}

/** A matrix by its name may mean hundreds of stages, for each stage that wants the files of all of them. */
export function sizeOfFrom({ from = [] }: Pick<ArtifactsDefinition, 'from'> = {}): number {
  return from.reduce((sum, name) => sum + name.length + NAME_SIZE, 0);
}
