/** What names stand for inside an extension, and what its stages mean to those around them. Pure. */
import type { ExtensionBody } from './drafts.ts';
import type { Environment } from './environment.ts';
import type { Expression, StageDefinition } from '../model/definition.ts';
import { conjunction, disjunction, literal } from '../expressions/substitute.ts';
import type { Substitution } from '../expressions/substitute.ts';

/** What one stage of a level has become: itself, or the stages of its extension. */
export interface Expanded {
  readonly stages: readonly StageDefinition[];
  readonly entries: readonly string[];
  readonly ends: readonly string[];
  readonly outputs: ReadonlyMap<string, Expression> | undefined;
}

export function inputMeaning(inputs: ReadonlyMap<string, Expression>): Substitution['meaning'] {
  return ([root, name = '']) => (root === 'inputs' ? (inputs.get(name) ?? literal('')) : undefined);
}

/** `INPUT_<NAME>` for every input. */
export function variablesOf(body: ExtensionBody, inputs: ReadonlyMap<string, Expression>): Environment {
  return new Map(
    body.inputs.map(({ name, variable }) => {
      const value = inputs.get(name);
      if (value === undefined) return [variable, ['']];
      return [
        variable,
        value.kind === 'literal'
          ? [String(value.value ?? '')]
          : value.kind === 'text'
            ? value.parts
            : [{ expression: value }],
      ];
    }),
  );
}

export function compare(stage: string, operator: '==' | '!=', status: string): Expression {
  return {
    kind: 'binary',
    operator,
    left: { kind: 'path', path: ['stages', stage, 'status'] },
    right: literal(status),
  };
}

/** One status for the stages of an extension: the worst of them; SKIPPED where its last ones all are. */
export function statusOf({ stages, ends }: Expanded): Expression {
  const has = (status: string, names: readonly string[]): Expression | undefined => {
    const any = disjunction(names.map((name) => compare(name, '==', status)));
    return any === undefined ? undefined : conjunction(any, literal(status));
  };
  const counted = stages.filter(({ allowFailure }) => !allowFailure).map(({ name }) => name);
  const skipped = conjunction(
    ends
      .map((name) => compare(name, '==', 'SKIPPED'))
      .reduceRight<Expression | undefined>((right, left) => conjunction(left, right), undefined),
    literal('SKIPPED'),
  );
  return (
    disjunction(
      [has('FAILED', counted), has('CANCELLED', counted), skipped, literal('SUCCESS')].filter(
        (value) => value !== undefined,
      ),
    ) ?? literal('SUCCESS')
  );
}

/** An object without a prototype: names such as `__proto__` and `constructor` are data. */
export function toRecord<Value>(entries: ReadonlyMap<string, Value>): Record<string, Value> {
  const record = Object.create(null) as Record<string, Value>;
  for (const [key, value] of entries) record[key] = value;
  return record;
}
