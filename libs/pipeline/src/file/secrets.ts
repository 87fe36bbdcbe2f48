/** Reads `secrets` of a stage: names of secrets, or a map of variables to them. No value of theirs is ever part of a definition. */
import { isSecretName, type SecretUse } from '../model/secret-use.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import type { MapEntry, ScalarNode } from '../yaml/yaml-tree.ts';
import { fieldOf, isNull, joinPath, kindOf, mustBe, readBoolean, readKeys, readList, readScalar } from './fields.ts';
import type { Field } from './fields.ts';
import { variableFault } from './environment.ts';
import { SECRET_KEYS } from './vocabulary.ts';

const WANTED = 'a list of names such as [NPM_TOKEN], or a map of variables to them';

/** In file order, each variable once. */
export function readSecrets(field: Field): SecretUse[] | undefined {
  const { node, problems, path } = field;
  const uses: SecretUse[] = [];
  if (node.kind === 'map') {
    for (const entry of node.entries) {
      const use = readVariable(entry, field);
      if (use !== undefined) uses.push(use);
    }
    if (node.entries.length === 0) mustBe(field, WANTED);
  } else {
    const names = readList(field, WANTED, PIPELINE_LIMITS.secretsMax);
    if (names === undefined) return undefined;
    if (names.length === 0) problems.add(node, path, `'${field.name}' names no secret`, 'leave the key out');
    for (const name of names) {
      const checked = readSecretName(name, field);
      if (checked === undefined) continue;
      const fault = variableFault(checked);
      if (fault !== undefined) problems.add(name, path, fault, `write a map: MY_${checked}: ${checked}`);
      else if (uses.some(({ variable }) => variable === checked))
        problems.add(name, path, `the secret ${quoted(checked)} is named twice`);
      else uses.push({ variable: checked, name: checked, file: false });
    }
  }
  if (uses.length > PIPELINE_LIMITS.secretsMax)
    problems.add(node, path, `'${field.name}' has more than ${PIPELINE_LIMITS.secretsMax} secrets`);
  return uses;
}

function readVariable({ key, keySpan, value }: MapEntry, field: Field): SecretUse | undefined {
  const { problems } = field;
  const path = joinPath(field.path, key);
  const fault = variableFault(key);
  if (fault !== undefined) {
    problems.add(keySpan, path, fault);
    return undefined;
  }
  if (value.kind !== 'map') {
    if (value.kind === 'list' || isNull(value)) {
      problems.add(
        value,
        path,
        `the variable ${quoted(key)} must name a secret, not ${kindOf(value)}`,
        `write '${key}: NPM_TOKEN', or '${key}: {secret: NPM_TOKEN, file: true}' for the path of a file`,
      );
      return undefined;
    }
    const name = readSecretName(value, { ...field, path });
    return name === undefined ? undefined : { variable: key, name, file: false };
  }
  const keys = readKeys(value, SECRET_KEYS, `of the variable ${quoted(key)}`, path, problems);
  const [secret, file] = [keys.get('secret'), keys.get('file')];
  if (secret === undefined) {
    problems.add(value, path, `the variable ${quoted(key)} has no 'secret'`, `write '${key}: {secret: NPM_TOKEN}'`);
    return undefined;
  }
  const node = readScalar(fieldOf(secret, path, problems), 'the name of a secret');
  const name = node === undefined ? undefined : readSecretName(node, { ...field, path: joinPath(path, 'secret') });
  const isFile = file === undefined ? false : readBoolean(fieldOf(file, path, problems));
  return name === undefined ? undefined : { variable: key, name, file: isFile ?? false };
}

export function readSecretName(
  node: ScalarNode,
  { problems, path }: Pick<Field, 'problems' | 'path'>,
): string | undefined {
  if (isSecretName(node.text)) return node.text;
  const upper = node.text.toUpperCase().replaceAll('-', '_');
  problems.add(
    node,
    path,
    `${quoted(node.text)} cannot be the name of a secret: capital letters, digits and '_', no digit first`,
    isSecretName(upper)
      ? `did you mean '${upper}'?`
      : "its value is set by 'penstock secret set', and never stands in a file",
  );
  return undefined;
}
