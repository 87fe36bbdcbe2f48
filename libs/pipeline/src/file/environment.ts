/** Reads `env`, of the pipeline or of a stage. */
import { BINDING_PREFIX } from './command.ts';
import type { Template } from '../model/definition.ts';
import { isNull, joinPath, kindOf, readMap } from './fields.ts';
import type { Field } from './fields.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import { isCodeVariable } from '../shell/code-variables.ts';
import { hasExpression, readTemplate } from './template.ts';
import type { ExpressionReader, ExpressionSite, Place } from './template.ts';
import { utf8Length } from '../text/text-position.ts';

export type Environment = ReadonlyMap<string, Template>;

/** The variables in file order; values are text as written. Problems are noted and their variables left out. */
export function readEnvironment(
  field: Field,
  place: Place,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): Environment {
  const variables = new Map<string, Template>();
  const { problems } = reader;
  const map = readMap(field, 'a map of variables to texts');
  if (map === undefined) return variables;
  if (map.entries.length > PIPELINE_LIMITS.envCountMax) {
    problems.add(map, field.path, `'${field.name}' has more than ${PIPELINE_LIMITS.envCountMax} variables`);
    return variables;
  }
  for (const { key, keySpan, value } of map.entries) {
    const path = joinPath(field.path, key);
    const fault = variableFault(key);
    if (fault !== undefined) problems.add(keySpan, path, fault);
    else if (isNull(value))
      problems.add(value, path, `the variable ${quoted(key)} has no value`, `write ${key}: '' for an empty text`);
    else if (value.kind !== 'scalar')
      problems.add(value, path, `the variable ${quoted(key)} must be a text, not ${kindOf(value)}`);
    else if (utf8Length(value.text, PIPELINE_LIMITS.envValueBytesMax) > PIPELINE_LIMITS.envValueBytesMax) {
      problems.add(
        value,
        path,
        `the value of ${quoted(key)} is longer than ${PIPELINE_LIMITS.envValueBytesMax / 1024} KiB`,
      );
    } else if (isCodeVariable(key) && hasExpression(value.text)) {
      problems.add(
        value,
        path,
        `${quoted(key)} cannot hold an expression: programs take its text as code, or as the name of a program`,
      );
    } else variables.set(key, readTemplate(value, place, path, reader, sites));
  }
  return variables;
}

const KEPT: Readonly<Record<string, string | undefined>> = {
  SERVICE_OUTPUT: "'SERVICE_OUTPUT' is set by the runner: it names the file that takes a stage's outputs",
  SERVICE_ID_TOKEN_FILE: "'SERVICE_ID_TOKEN_FILE' is set by the runner: it names the file of the stage's 'id_token'",
  SERVICE_STAGES: "'SERVICE_STAGES' is set by the runner: it names the file that takes stages to be added to the run",
  SERVICE_MASK: "'SERVICE_MASK' is set by the runner: it names the file that takes values to be masked",
};

/** Why a variable cannot be called so. */
export function variableFault(name: string): string | undefined {
  if (name.length > 256 || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    return `${quoted(name)} cannot be the name of a variable: letters, digits and '_', no digit first`;
  if (name.startsWith(BINDING_PREFIX))
    return `names that begin with '${BINDING_PREFIX}' are kept for the values of expressions`;
  return Object.hasOwn(KEPT, name) ? KEPT[name] : undefined;
}
