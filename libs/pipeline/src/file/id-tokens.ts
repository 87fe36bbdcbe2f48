/** Reads `id_token` of a stage: for whom it gets tokens, and in which variables. */
import type { IdTokenUse } from '../model/id-token-use.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import type { YamlNode } from '../yaml/yaml-tree.ts';
import { variableFault } from './environment.ts';
import { fieldOf, mustBe, readKeys, readScalar, type Field } from './fields.ts';
import { hasExpression } from './template.ts';
import { ID_TOKEN_KEYS } from './vocabulary.ts';

const WANTED = 'a map such as {audience: https://sts.example}, or a list of such maps';
/** Where nothing else is said. */
const USUAL_VARIABLE = 'SERVICE_ID_TOKEN_FILE';

/** In file order, each variable once. */
export function readIdTokens(field: Field): IdTokenUse[] | undefined {
  const { node, problems, path } = field;
  const nodes: readonly YamlNode[] = node.kind === 'list' ? node.items : [node];
  if (node.kind === 'list' && nodes.length === 0) mustBe(field, WANTED);
  if (nodes.length > PIPELINE_LIMITS.idTokensMax) {
    problems.add(node, path, `'${field.name}' has more than ${PIPELINE_LIMITS.idTokensMax} tokens`);
    return undefined;
  }
  const uses: IdTokenUse[] = [];
  for (const each of nodes) {
    const use = readUse({ ...field, node: each });
    if (use === undefined) continue;
    if (uses.some(({ variable }) => variable === use.variable))
      problems.add(
        each,
        path,
        `two tokens have the variable ${quoted(use.variable)}`,
        "give each a 'variable' of its own",
      );
    else uses.push(use);
  }
  return uses;
}

function readUse(field: Field): IdTokenUse | undefined {
  const { node, problems, path } = field;
  if (node.kind !== 'map') {
    mustBe(field, WANTED);
    return undefined;
  }
  const keys = readKeys(node, ID_TOKEN_KEYS, "in 'id_token'", path, problems);
  const [audience, variable] = [keys.get('audience'), keys.get('variable')];
  if (audience === undefined)
    problems.add(
      node.entries[0]?.keySpan ?? node,
      path,
      "'id_token' has no 'audience'",
      'whoever is to take the token, such as https://sts.example',
    );
  const read = audience === undefined ? undefined : readAudience(fieldOf(audience, path, problems));
  const named = variable === undefined ? USUAL_VARIABLE : readVariable(fieldOf(variable, path, problems));
  return read === undefined || named === undefined ? undefined : { audience: read, variable: named };
}

/** Whoever is to take a token. */
export function readAudience(field: Field): string | undefined {
  const node = readScalar(field, 'whoever is to take the token, such as https://sts.example');
  if (node === undefined) return undefined;
  const { text } = node;
  const fault = hasExpression(text)
    ? 'cannot hold an expression: who takes the token stands in the file'
    : text === '' || text.length > PIPELINE_LIMITS.audienceLengthMax || /[\p{Cc}\s]/u.test(text)
      ? `must have 1 to ${PIPELINE_LIMITS.audienceLengthMax} characters without blanks`
      : undefined;
  if (fault === undefined) return text;
  field.problems.add(node, field.path, `the audience ${quoted(text)} ${fault}`);
  return undefined;
}

function readVariable(field: Field): string | undefined {
  const node = readScalar(field, 'the name of a variable');
  if (node === undefined) return undefined;
  const fault = node.text === USUAL_VARIABLE ? undefined : variableFault(node.text);
  if (fault === undefined) return node.text;
  field.problems.add(node, field.path, fault);
  return undefined;
}
