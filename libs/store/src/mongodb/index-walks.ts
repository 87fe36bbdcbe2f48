/**
 * A list as walks along one index, each a plain range of it, one after the other until the limit is reached. No `$or`, no
 * sorting, nothing merged: so no server can choose to read more than it answers.
 *
 * A document without the field ordered by (an older release wrote it) stands where the field's empty value stands. An
 * index has it elsewhere, with nulls, so that position is a walk of its own: both kinds there, by `_id`.
 */
import type { Document } from 'mongodb';
import type { CollectionSpec, FieldType, Scalar } from '../port.ts';
import type { BoundOperator, QueryPlan } from '../query-plan.ts';
import { EMPTY, storedScalar } from './mongo-documents.ts';

export interface IndexWalk {
  readonly filter: Document;
  readonly sort: Document;
  /** The index's name; without one the list is by `_id` alone, which leaves no choice. */
  readonly hint?: string;
}

const OPERATORS: Readonly<Record<BoundOperator, string>> = { '>': '$gt', '>=': '$gte', '<': '$lt', '<=': '$lte' };
/** Keeps nulls out of a walk: a bound is compared with its own type only. */
const LEAST: Readonly<Record<FieldType, Scalar>> = { string: '', integer: Number.MIN_SAFE_INTEGER, boolean: false };

/** A single value, or what lies between two, themselves not included; null is no end. */
type Segment =
  | { readonly at: Scalar; readonly isContinued: boolean }
  | { readonly low: Scalar | null; readonly high: Scalar | null };

export function walksOf(spec: CollectionSpec, plan: QueryPlan): IndexWalk[] {
  const { field, descending } = plan.order;
  const direction = descending ? -1 : 1;
  const name = indexOf(spec, plan);
  const hint = name === null ? {} : { hint: name };
  const equal = plan.equal.map((one) => equalTo(spec, one.field, one.values));
  const bounds = boundsOf(plan);
  const behindId = plan.after === null ? [] : [{ _id: { [descending ? '$lt' : '$gt']: plan.after.id } }];
  if (field === 'id') return [{ filter: allOf([...equal, ...bounds, ...behindId]), sort: { _id: direction }, ...hint }];

  const type = spec.fields[field] ?? 'string';
  return segmentsOf(plan, type).map((segment) => {
    if ('at' in segment)
      return {
        filter: allOf([...equal, equalTo(spec, field, [segment.at]), ...(segment.isContinued ? behindId : [])]),
        sort: { _id: direction },
        ...hint,
      };
    const low = segment.low === null ? { $gte: storedScalar(LEAST[type]) } : { $gt: storedScalar(segment.low) };
    const high = segment.high === null ? {} : { $lt: storedScalar(segment.high) };
    return {
      filter: allOf([...equal, { [field]: { ...low, ...high } }, ...bounds]),
      sort: { [field]: direction, _id: direction },
      ...hint,
    };
  });
}

/** In the order of the list, from the position continued behind to the end; those that can hold nothing left out. */
function segmentsOf(plan: QueryPlan, type: FieldType): Segment[] {
  const { descending } = plan.order;
  const empty = EMPTY[type];
  const from = plan.after?.value;
  const range = (first: Scalar | null, last: Scalar | null): Segment =>
    descending ? { low: last, high: first } : { low: first, high: last };
  const isEmptyAhead = from === undefined || compareScalars(from, empty) * (descending ? -1 : 1) < 0;
  const segments: Segment[] = from === undefined ? [] : [{ at: from, isContinued: true }];
  if (isEmptyAhead) segments.push(range(from ?? null, empty), { at: empty, isContinued: false }, range(empty, null));
  else segments.push(range(from, null));
  return segments.filter((segment) => {
    if ('at' in segment) return meetsBounds(plan, segment.at);
    const { low, high } = segment;
    if (high !== null && compareScalars(high, LEAST[type]) <= 0) return false;
    return plan.bounds.every(({ operator, value }) =>
      operator.startsWith('>')
        ? high === null || compareScalars(value, high) < 0
        : low === null || compareScalars(value, low) > 0,
    );
  });
}

/** What a plan selects as one condition, for deleting by ids what still meets it. */
export function conditionOf(spec: CollectionSpec, plan: QueryPlan): Document {
  const { field } = plan.order;
  const equal = plan.equal.map((one) => equalTo(spec, one.field, one.values));
  const bounds = boundsOf(plan);
  if (bounds.length === 0 || field === 'id' || !meetsBounds(plan, EMPTY[spec.fields[field] ?? 'string']))
    return allOf([...equal, ...bounds]);
  return allOf([...equal, { $or: [allOf(bounds), { [field]: null }] }]);
}

export function indexName(index: readonly string[]): string {
  return index.join('_');
}

function indexOf(spec: CollectionSpec, plan: QueryPlan): string | null {
  const { field } = plan.order;
  const rest = field === 'id' ? [] : [field];
  if (plan.equal.length + rest.length === 0) return null;
  const bound = new Set(plan.equal.map((one) => one.field));
  const index = spec.indexes.find(
    (fields) =>
      fields.length === bound.size + rest.length &&
      fields.slice(0, bound.size).every((each) => bound.has(each)) &&
      (rest.length === 0 || fields.at(-1) === field),
  );
  if (index === undefined) throw new Error(`no index of '${spec.name}' serves a list that its plan was made for`);
  return indexName(index);
}

/** An absent field has its empty value. */
export function equalTo(spec: CollectionSpec, field: string, values: readonly Scalar[]): Document {
  const empty = EMPTY[spec.fields[field] ?? 'string'];
  const wanted = values.map(storedScalar);
  if (values.includes(empty)) return { [field]: { $in: [...wanted, null] } };
  return { [field]: wanted.length === 1 ? { $eq: wanted[0] } : { $in: wanted } };
}

function boundsOf(plan: QueryPlan): Document[] {
  const name = plan.order.field === 'id' ? '_id' : plan.order.field;
  return plan.bounds.map(({ operator, value }) => ({ [name]: { [OPERATORS[operator]]: storedScalar(value) } }));
}

function allOf(conditions: readonly Document[]): Document {
  if (conditions.length === 0) return {};
  return conditions.length === 1 ? (conditions[0] ?? {}) : { $and: conditions };
}

function meetsBounds(plan: QueryPlan, value: Scalar): boolean {
  return plan.bounds.every((bound) => {
    const order = compareScalars(value, bound.value);
    return bound.operator === '>'
      ? order > 0
      : bound.operator === '>='
        ? order >= 0
        : bound.operator === '<'
          ? order < 0
          : order <= 0;
  });
}

/** Strings by their code points, as MongoDB does; JavaScript's `<` goes by UTF-16 units. */
function compareScalars(a: Scalar, b: Scalar): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return Number(a) - Number(b);
}
