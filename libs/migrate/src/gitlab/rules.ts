/** `rules`, `only` and `except` of GitLab as conditions. */
import { lookup } from '../lookup.ts';
import {
  ALWAYS,
  all,
  any,
  branchIs,
  IS_BRANCH,
  IS_TAG,
  refIs,
  tagIs,
  triggerIs,
  type Condition,
} from '../condition.ts';
import { quoted } from '../shell-text.ts';

const TOKEN =
  /\s*(?:(&&|\|\||==|!=|=~|!~|[()])|(\$\w+|\$\{\w+\})|("[^"]*"|'[^']*')|(\/(?:[^/\\]|\\.)*\/[a-z]*)|(null))/y;
/** Of a rule: twice what a condition of ours may have. */
const LENGTH_MAX = 4_000;
const SHOWN_MAX = 100;
const SOURCES: Readonly<Record<string, string>> = lookup({
  push: 'push',
  merge_request_event: 'pull_request',
  schedule: 'schedule',
  web: 'api',
  api: 'api',
  trigger: 'api',
});
/** A text for the inside of double quotes of a script. */
const SHELL: Readonly<Record<string, string>> = lookup({
  CI_COMMIT_BRANCH: '$(case "${SERVICE_REF:-}" in refs/heads/*) echo "${SERVICE_REF#refs/heads/}" ;; esac)',
  CI_COMMIT_TAG: '$(case "${SERVICE_REF:-}" in refs/tags/*) echo "${SERVICE_REF#refs/tags/}" ;; esac)',
  CI_COMMIT_REF_NAME: '${SERVICE_REF#refs/*/}',
  CI_PROJECT_PATH: '${SERVICE_REPOSITORY:-}',
  CI_PROJECT_NAMESPACE: '${SERVICE_REPOSITORY%/*}',
  CI_PROJECT_ROOT_NAMESPACE: '${SERVICE_REPOSITORY%%/*}',
});

export interface RuleNames {
  /** The name of the default branch, which a file cannot say. */
  readonly defaultBranch: string;
  /** Variables of the file, and what they are. */
  readonly variables: ReadonlyMap<string, string>;
}

/** What stands after `if`. */
export function conditionOfRule(text: string, names: RuleNames): Condition {
  if (text.length > LENGTH_MAX) return { kind: 'unknown', text: `${text.slice(0, SHOWN_MAX)}…` };
  const tokens: string[] = [];
  TOKEN.lastIndex = 0;
  let end = 0;
  while (end < text.trimEnd().length) {
    const match = TOKEN.exec(text);
    if (match === null) return { kind: 'unknown', text };
    tokens.push(match[0].trim());
    end = TOKEN.lastIndex;
  }
  const reader = new RuleReader(tokens, names);
  return reader.whole() ?? { kind: 'unknown', text };
}

class RuleReader {
  readonly #tokens: readonly string[];
  readonly #names: RuleNames;
  #at = 0;

  constructor(tokens: readonly string[], names: RuleNames) {
    this.#tokens = tokens;
    this.#names = names;
  }

  whole(): Condition | undefined {
    const condition = this.#either();
    return this.#at === this.#tokens.length ? condition : undefined;
  }

  #either(): Condition | undefined {
    return this.#chain('||', () => this.#both(), any);
  }

  #both(): Condition | undefined {
    return this.#chain('&&', () => this.#single(), all);
  }

  #chain(
    operator: string,
    part: () => Condition | undefined,
    join: (sides: Condition[]) => Condition,
  ): Condition | undefined {
    const sides: Condition[] = [];
    do {
      const side = part();
      if (side === undefined) return undefined;
      sides.push(side);
    } while (this.#taken(operator));
    return join(sides);
  }

  #single(): Condition | undefined {
    if (this.#taken('(')) {
      const inner = this.#either();
      return this.#taken(')') ? inner : undefined;
    }
    const left = this.#tokens[this.#at++];
    if (left === undefined) return undefined;
    const operator = this.#tokens[this.#at];
    if (operator === undefined || !['==', '!=', '=~', '!~'].includes(operator))
      return left.startsWith('$') ? this.#present(nameOf(left)) : undefined;
    this.#at += 1;
    const right = this.#tokens[this.#at++];
    if (right === undefined) return undefined;
    const [variable, value] = left.startsWith('$') ? [left, right] : [right, left];
    if (!variable.startsWith('$')) return undefined;
    const positive = operator.includes('~')
      ? this.#matches(nameOf(variable), value)
      : this.#equals(nameOf(variable), value);
    return operator.startsWith('!') ? { kind: 'not', of: positive } : positive;
  }

  #present(name: string): Condition {
    if (name === 'CI_COMMIT_TAG') return IS_TAG;
    if (name === 'CI_COMMIT_BRANCH') return all([IS_BRANCH, { kind: 'not', of: triggerIs('pull_request') }]);
    if (
      name === 'CI_MERGE_REQUEST_IID' ||
      name === 'CI_MERGE_REQUEST_ID' ||
      name === 'CI_MERGE_REQUEST_TARGET_BRANCH_NAME'
    )
      return triggerIs('pull_request');
    if (name === 'CI_OPEN_MERGE_REQUESTS') return { kind: 'fact', when: 'false', shell: 'false' };
    const known = this.#names.variables.get(name);
    if (known !== undefined) return known === '' ? { kind: 'fact', when: 'false', shell: 'false' } : ALWAYS;
    return { kind: 'fact', shell: `[ -n "\${${name}:-}" ]` };
  }

  #equals(name: string, right: string): Condition {
    if (right === 'null' || right === '""' || right === "''") return { kind: 'not', of: this.#present(name) };
    const value = this.#valueOf(right);
    if (value === undefined) return { kind: 'unknown', text: right };
    if (name === 'CI_PIPELINE_SOURCE') {
      const trigger = SOURCES[value];
      return trigger === undefined ? { kind: 'fact', when: 'false', shell: 'false' } : triggerIs(trigger);
    }
    if (name === 'CI_COMMIT_BRANCH') return refIs(`refs/heads/${value}`);
    if (name === 'CI_COMMIT_TAG') return refIs(`refs/tags/${value}`);
    if (name === 'CI_COMMIT_REF_NAME') return any([refIs(`refs/heads/${value}`), refIs(`refs/tags/${value}`)]);
    const shell = SHELL[name] ?? `\${${name}:-${this.#names.variables.get(name) ?? ''}}`;
    return { kind: 'fact', shell: `[ "${shell}" = ${quoted(value)} ]` };
  }

  #matches(name: string, right: string): Condition {
    const pattern = /^\/(.*)\/([a-z]*)$/s.exec(right);
    if (pattern === null) return { kind: 'unknown', text: right };
    const [, source = '', flags = ''] = pattern;
    const shell = SHELL[name] ?? `\${${name}:-${this.#names.variables.get(name) ?? ''}}`;
    const extended = source
      .replaceAll(String.raw`\/`, '/')
      .replaceAll(String.raw`\d`, '[0-9]')
      .replaceAll(String.raw`\w`, '[A-Za-z0-9_]');
    return {
      kind: 'fact',
      shell: `printf '%s\\n' "${shell}" | grep -Eq${flags.includes('i') ? 'i' : ''} ${quoted(extended)}`,
    };
  }

  #valueOf(token: string): string | undefined {
    if (token.startsWith('"') || token.startsWith("'")) return token.slice(1, -1);
    if (nameOf(token) === 'CI_DEFAULT_BRANCH') return this.#names.defaultBranch;
    return this.#names.variables.get(nameOf(token));
  }

  #taken(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false;
    this.#at += 1;
    return true;
  }
}

function nameOf(token: string): string {
  return token.replaceAll(/[${}]/g, '');
}

/** `only: [main, tags, /^release/]`. */
export function conditionOfRefs(refs: readonly string[], names: RuleNames): Condition {
  return any(
    refs.map((ref): Condition => {
      if (ref === 'tags') return IS_TAG;
      if (ref === 'branches') return IS_BRANCH;
      if (ref === 'merge_requests' || ref === 'external_pull_requests') return triggerIs('pull_request');
      if (ref === 'schedules') return triggerIs('schedule');
      if (ref === 'pushes') return triggerIs('push');
      if (ref === 'web' || ref === 'api' || ref === 'triggers') return triggerIs('api');
      // What starts no run here; branches that are called so would be said by a pattern.
      if (ref === 'chat' || ref === 'external' || ref === 'pipelines')
        return { kind: 'fact', when: 'false', shell: 'false' };
      if (ref === '$CI_DEFAULT_BRANCH') return branchIs(names.defaultBranch);
      if (ref.startsWith('/')) return conditionOfRule(`$CI_COMMIT_REF_NAME =~ ${ref}`, names);
      return any([branchIs(ref), tagIs(ref)]);
    }),
  );
}
