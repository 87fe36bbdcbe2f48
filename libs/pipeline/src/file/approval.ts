/** Reads `approval` of a stage, and says what cannot stand beside it: the stage is a gate, which runs nothing. */
import type { ApprovalDefinition } from '../model/approval.ts';
import type { Template } from '../model/definition.ts';
import { parseDuration } from '../model/duration.ts';
import { PIPELINE_LIMITS } from '../model/limits.ts';
import { quoted } from '../text/printable.ts';
import type { Problems } from '../text/problems.ts';
import type { MapEntry } from '../yaml/yaml-tree.ts';
import { fieldOf, mustBe, readBoolean, readInteger, readKeys, readList, readScalar, type Field } from './fields.ts';
import { hasExpression, readTemplate, type ExpressionReader, type ExpressionSite } from './template.ts';
import { APPROVAL_KEYS, BESIDE_APPROVAL } from './vocabulary.ts';

/** One character behind another that a login or an address has; no expression, which has blanks or braces. */
const PERSON = /^[!-~]+$/;

export function readApproval(
  field: Field,
  reader: ExpressionReader,
  sites: ExpressionSite[],
): ApprovalDefinition<Template> | undefined {
  const { node, path, problems } = field;
  if (node.kind !== 'map') {
    mustBe(field, "a map with 'approvers', 'quorum', 'timeout', 'prevent_self' or 'message'", () =>
      node.kind === 'list'
        ? "name them under it: 'approvers: [alice, bob]'"
        : "write 'approval: {}' where whoever may cancel the run may approve",
    );
    return undefined;
  }
  const keys = readKeys(node, APPROVAL_KEYS, "in 'approval'", path, problems);
  const inner = <Value>(
    key: (typeof APPROVAL_KEYS)[number],
    read: (value: Field) => Value | undefined,
  ): Value | undefined => {
    const found = keys.get(key);
    return found === undefined ? undefined : read(fieldOf(found, path, problems));
  };
  const approvers = inner('approvers', readApprovers);
  const quorum = inner('quorum', (value) => readInteger(value, 1, PIPELINE_LIMITS.approversMax)) ?? 1;
  if (approvers !== undefined && quorum > approvers.length) {
    const at = keys.get('quorum');
    problems.add(
      at?.value ?? node,
      `${path}.quorum`,
      `'quorum' is ${quorum}, and there ${approvers.length === 1 ? 'is one approver' : `are ${approvers.length} approvers`}: nobody could ever approve it`,
      "name more under 'approvers', or ask for fewer",
    );
  }
  const message = inner('message', (value) => readMessage(value, reader, sites));
  return {
    ...(approvers === undefined ? {} : { approvers }),
    quorum,
    timeoutMs: inner('timeout', readTimeout) ?? PIPELINE_LIMITS.approvalTimeoutMsDefault,
    preventSelf: inner('prevent_self', readBoolean) ?? false,
    ...(message === undefined ? {} : { message }),
  };
}

function readApprovers(field: Field): string[] | undefined {
  const { problems, path, node } = field;
  const nodes = readList(field, 'a login, an email address or a list of them', PIPELINE_LIMITS.approversMax);
  if (nodes === undefined) return undefined;
  if (nodes.length === 0)
    problems.add(node, path, "'approvers' names nobody", 'leave it out where whoever may cancel the run may approve');
  const names = new Set<string>();
  for (const one of nodes) {
    const name = one.text;
    if (hasExpression(name))
      problems.add(one, path, 'an approver cannot be an expression: who may decide stands in the file');
    else if (!PERSON.test(name) || name.length > PIPELINE_LIMITS.approverLengthMax)
      problems.add(one, path, `${quoted(name)} is neither a login nor an email address`);
    else if (names.has(name.toLowerCase()))
      problems.add(one, path, `the approver ${quoted(name)} is named twice`, 'different people count');
    names.add(name.toLowerCase());
  }
  return nodes.length === 0 ? undefined : nodes.map(({ text }) => text);
}

function readTimeout(field: Field): number | undefined {
  const { node } = field;
  const ms = node.kind === 'scalar' ? parseDuration(node.text) : undefined;
  if (ms !== undefined && ms >= PIPELINE_LIMITS.approvalTimeoutMsMin && ms <= PIPELINE_LIMITS.approvalTimeoutMsMax)
    return ms;
  mustBe(field, 'a time such as 7d, 12h or 1d12h, from 1s to 365d', () =>
    node.kind === 'scalar' && /^[0-9]{1,4}$/.test(node.text) ? `add the unit: '${node.text}d'` : undefined,
  );
  return undefined;
}

function readMessage(field: Field, reader: ExpressionReader, sites: ExpressionSite[]): Template | undefined {
  const node = readScalar(field, 'a text');
  if (node === undefined) return undefined;
  if (node.text.length > PIPELINE_LIMITS.approvalMessageLengthMax || /(?![\n\t])\p{Cc}/u.test(node.text)) {
    field.problems.add(
      node,
      field.path,
      `'message' must be a text of at most ${PIPELINE_LIMITS.approvalMessageLengthMax} characters, without control characters`,
    );
    return undefined;
  }
  return readTemplate(node, 'message', field.path, reader, sites);
}

/** Notes every key of the stage that means nothing where nothing runs. */
export function checkBesideApproval(
  keys: ReadonlyMap<string, MapEntry>,
  stage: string,
  path: string,
  problems: Problems,
): void {
  if (!keys.has('approval')) return;
  for (const [key, { keySpan }] of keys) {
    if (BESIDE_APPROVAL.has(key)) continue;
    problems.add(
      keySpan,
      `${path}.${key}`,
      `'${key}' cannot stand beside 'approval': such a stage runs nothing`,
      key === 'timeout'
        ? "how long it waits is 'approval.timeout'"
        : `put it into a stage that comes after ${quoted(stage)}`,
    );
  }
}
