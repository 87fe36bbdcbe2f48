/** Random histories of calls, with few ids and few values, so that they meet; and what each call is to answer. */
import fc from 'fast-check';
import type { Collection, CollectionSpec, KnownVersion, Selection } from '../port.ts';
import type { ModelDocument, ModelSelection, StoreModel } from './store-model.ts';

export const suiteSpec = {
  name: 'things',
  fields: { owner: 'string', rank: 'integer', open: 'boolean', major: 'integer', minor: 'integer' },
  parts: ['text', 'note'],
  indexes: [['owner'], ['owner', 'rank'], ['owner', 'open'], ['owner', 'open', 'rank'], ['rank']],
  version: ['major', 'minor'],
} as const satisfies CollectionSpec;

export type Step =
  | { readonly kind: 'insert'; readonly document: ModelDocument }
  | { readonly kind: 'replaceNewer'; readonly documents: readonly ModelDocument[] }
  | { readonly kind: 'get' | 'delete'; readonly id: string }
  | { readonly kind: 'list' | 'deleteWhere'; readonly selection: ModelSelection }
  | {
      readonly kind: 'listFresh';
      readonly selection: ModelSelection;
      readonly known: readonly KnownVersion[];
      readonly freshMax: number;
    };

const anyOwner = fc.constantFrom('', 'x', 'X', 'xy');
const anyRank = fc.integer({ min: -2, max: 2 });
const documentWith = (anyId: fc.Arbitrary<string>): fc.Arbitrary<ModelDocument> =>
  fc.record({
    id: anyId,
    owner: anyOwner,
    rank: anyRank,
    open: fc.boolean(),
    major: fc.nat(2),
    minor: fc.nat(3),
    text: fc.string({ unit: 'grapheme', maxLength: 30 }),
    note: fc.constantFrom('', 'long '.repeat(500)),
  });
const anyRange = fc.record({ gt: anyRank, gte: anyRank, lt: anyRank, lte: anyRank }, { requiredKeys: [] });
const oneOrSome = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof(
    value,
    fc.uniqueArray(value, { minLength: 1, maxLength: 3 }).map((values) => ({ in: values })),
  );
const selectionFrom = (anyId: fc.Arbitrary<string>): fc.Arbitrary<ModelSelection> =>
  fc
    .record({
      owner: oneOrSome(anyOwner),
      open: oneOrSome(fc.boolean()),
      range: anyRange,
      form: fc.nat(5),
      direction: fc.constantFrom('asc', 'desc'),
      limit: fc.integer({ min: 1, max: 9 }),
      after: fc.option(fc.record({ id: anyId, value: anyRank }), { nil: undefined }),
    })
    .map(({ owner, open, range, form, direction, limit, after }) => {
      const byRank = form % 2 === 1;
      const where = {
        ...(form === 4 ? {} : { owner }),
        ...(form === 2 || form === 3 ? { open } : {}),
        ...(byRank ? { rank: range } : {}),
      };
      return { where, orderBy: { field: byRank ? 'rank' : 'id', direction }, limit, after };
    });
/** `beyondBmp`: some ids have characters beyond U+FFFF, which not every stand-in sorts by their code points. */
export function anyStep({ beyondBmp }: { readonly beyondBmp: boolean }): fc.Arbitrary<Step> {
  const anyId = fc.constantFrom('a', 'B', 'b', 'ä', '\ue000', ...(beyondBmp ? ['𝒳'] : []), '0', '00');
  const anyDocument = documentWith(anyId);
  const anySelection = selectionFrom(anyId);
  return fc.oneof(
    fc.record({ kind: fc.constant('insert' as const), document: anyDocument }),
    fc.record({
      kind: fc.constant('replaceNewer' as const),
      documents: fc.uniqueArray(anyDocument, { selector: ({ id }) => id, maxLength: 6 }),
    }),
    fc.record({ kind: fc.constantFrom('get' as const, 'delete' as const), id: anyId }),
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('list' as const), selection: anySelection }) },
    fc.record({
      kind: fc.constant('listFresh' as const),
      selection: anySelection,
      known: fc.uniqueArray(fc.tuple(anyId, fc.nat(2), fc.nat(3)), { selector: ([id]) => id }),
      freshMax: fc.integer({ min: 1, max: 4 }),
    }),
    fc.record({
      kind: fc.constant('deleteWhere' as const),
      selection: anySelection.map((selection) => ({ ...selection, after: undefined })),
    }),
  );
}

/** What the store answers, and what the model does. */
export async function answersTo(
  things: Collection<typeof suiteSpec>,
  model: StoreModel,
  step: Step,
): Promise<readonly [answer: unknown, expected: unknown]> {
  switch (step.kind) {
    case 'insert':
      return [await things.insert(step.document), model.insert(step.document)];
    case 'replaceNewer':
      return [
        (await things.replaceNewer(step.documents)).stale.toSorted(),
        model.replaceNewer(step.documents).stale.toSorted(),
      ];
    case 'get':
      return [await things.get(step.id), model.documents.get(step.id) ?? null];
    case 'delete':
      return [await things.delete(step.id), model.documents.delete(step.id)];
    case 'list':
      return [await things.list(step.selection as Selection<typeof suiteSpec>), model.list(step.selection)];
    case 'listFresh':
      return [
        await things.listFresh(step.selection as Selection<typeof suiteSpec>, step),
        model.listFresh(step.selection, step),
      ];
    case 'deleteWhere':
      return [
        await things.deleteWhere(step.selection as Selection<typeof suiteSpec>),
        model.deleteWhere(step.selection),
      ];
  }
}
