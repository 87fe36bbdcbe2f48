/**
 * From a selection to what an index answers, the same for every adapter: the fields bound to values, the field ordered
 * by with its bounds, the position to continue behind. What no declared index serves is refused here (see `Selection`).
 */
import { isOfType } from './checks.ts';
import { StoreUsageError } from './errors.ts';
import type { CollectionSpec, Range, Scalar } from './port.ts';

const LIST_LIMIT_MAX = 1000;
const IN_VALUES_MAX = 100;

export interface QueryPlan {
  /** The first fields of an index, each with the values wanted (distinct, at least one). */
  readonly equal: readonly { readonly field: string; readonly values: readonly Scalar[] }[];
  readonly order: { readonly field: string; readonly descending: boolean };
  /** On the field ordered by. */
  readonly bounds: readonly { readonly operator: BoundOperator; readonly value: Scalar }[];
  readonly after: { readonly id: string; readonly value: Scalar } | null;
  readonly limit: number;
}

export type BoundOperator = '>' | '>=' | '<' | '<=';
const BOUND_OPERATORS = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const;

/** A selection with its type parameters forgotten; exact types are the port's concern. */
export interface AnySelection {
  readonly where?: Readonly<Record<string, unknown>> | undefined;
  readonly orderBy?: { readonly field: PropertyKey; readonly direction: 'asc' | 'desc' } | undefined;
  readonly limit: number;
  readonly after?: { readonly id: string; readonly value?: Scalar | undefined } | undefined;
}

export function planQuery(store: string, spec: CollectionSpec, selection: AnySelection): QueryPlan {
  const refuse = (problem: string): never => {
    throw new StoreUsageError(store, `collection '${spec.name}': ${problem}`);
  };
  const { limit } = selection;
  if (!Number.isInteger(limit) || limit < 1 || limit > LIST_LIMIT_MAX)
    refuse(`limit ${limit}; it is 1 to ${LIST_LIMIT_MAX}`);
  const orderField = String(selection.orderBy?.field ?? 'id');
  const typeOf = (field: string) =>
    field === 'id' ? 'string' : Object.hasOwn(spec.fields, field) ? spec.fields[field] : undefined;
  const checkValue = (field: string, value: unknown): Scalar => {
    const type = typeOf(field);
    if (type === undefined) return refuse(`'${field}' is no field`);
    return isOfType(value, type) ? value : refuse(`a value for '${field}' is no ${type}`);
  };

  const equal: { field: string; values: Scalar[] }[] = [];
  const bounds: { operator: BoundOperator; value: Scalar }[] = [];
  for (const [field, condition] of Object.entries(selection.where ?? {})) {
    if (condition === undefined) continue;
    if (typeof condition !== 'object' || condition === null) {
      equal.push({ field, values: [checkValue(field, condition)] });
    } else if ('in' in condition) {
      const values = [
        ...new Set((condition as { in: readonly unknown[] }).in.map((value) => checkValue(field, value))),
      ];
      if (values.length < 1 || values.length > IN_VALUES_MAX)
        refuse(`'${field}' is to be in ${values.length} values; 1 to ${IN_VALUES_MAX}`);
      equal.push({ field, values });
    } else {
      if (field !== orderField) refuse(`a range on '${field}' needs a list ordered by it`);
      for (const [name, value] of Object.entries(condition as Range)) {
        if (value === undefined) continue;
        if (!Object.hasOwn(BOUND_OPERATORS, name)) refuse(`'${name}' is no bound of a range`);
        bounds.push({ operator: BOUND_OPERATORS[name as keyof Range], value: checkValue(field, value) });
      }
    }
  }
  if (typeOf(orderField) === undefined) refuse(`'${orderField}' is no field`);
  if (equal.reduce((product, { values }) => product * values.length, 1) > IN_VALUES_MAX)
    refuse(`more than ${IN_VALUES_MAX} combinations of values`);
  if (
    !isIndexed(
      spec,
      equal.map(({ field }) => field),
      orderField,
    )
  ) {
    refuse(`no index serves ${equal.map(({ field }) => field).join(', ') || 'all documents'} ordered by ${orderField}`);
  }
  return {
    equal,
    order: { field: orderField, descending: selection.orderBy?.direction === 'desc' },
    bounds,
    after:
      selection.after === undefined
        ? null
        : {
            id: String(checkValue('id', selection.after.id)),
            value: orderField === 'id' ? selection.after.id : checkValue(orderField, selection.after.value),
          },
    limit,
  };
}

/** Exactly the bound fields, in any order, then the field ordered by: then the index's own order is the list's. */
function isIndexed(spec: CollectionSpec, equal: readonly string[], orderField: string): boolean {
  if (equal.includes(orderField) || equal.includes('id')) return false;
  const rest = orderField === 'id' ? [] : [orderField];
  if (equal.length + rest.length === 0) return true;
  return spec.indexes.some(
    (index) =>
      index.length === equal.length + rest.length &&
      equal.every((field) => index.indexOf(field) < equal.length && index.includes(field)) &&
      (rest.length === 0 || index.at(-1) === orderField),
  );
}
