/**
 * Conditions of other engines, and what they become.
 *
 * CONDITION-1. What an expression of ours can say becomes `when`. What only a shell can say (a branch that begins with `release/`)
 *    is found out by a stage of its own, `conditions`, whose outputs `when` reads: so a stage is skipped, not begun and ended early.
 * CONDITION-2. A stage whose condition cannot be said fails before its first command: what was not to be run always is never run by mistake.
 */
import { newStage, type Draft, type DraftStage } from './draft.ts';
import { missing } from './shell-text.ts';

export type Condition =
  | { readonly kind: 'and' | 'or'; readonly sides: readonly Condition[] }
  | { readonly kind: 'not'; readonly of: Condition }
  | { readonly kind: 'always' }
  /** `when`: an expression of ours. `shell`: a command that succeeds where it holds, for which the variables of a stage are there. */
  | { readonly kind: 'fact'; readonly when?: string; readonly shell?: string }
  | { readonly kind: 'unknown'; readonly text: string };

export const ALWAYS: Condition = { kind: 'always' };

export function all(sides: readonly Condition[]): Condition {
  const rest = sides.filter(({ kind }) => kind !== 'always');
  const [only = ALWAYS] = rest;
  return rest.length <= 1 ? only : { kind: 'and', sides: rest };
}

export function any(sides: readonly Condition[]): Condition {
  const [only = ALWAYS] = sides;
  if (sides.length <= 1) return only;
  return sides.some(({ kind }) => kind === 'always') ? ALWAYS : { kind: 'or', sides };
}

const CONDITIONS = 'conditions';
const REF = '"${SERVICE_REF:-}"';

/** What began a run: `push`, `pull_request`, `schedule`, `api`. */
export function triggerIs(trigger: string): Condition {
  return { kind: 'fact', when: `run.trigger == '${trigger}'`, shell: `[ "$TRIGGER" = ${trigger} ]` };
}

export function refIs(ref: string): Condition {
  if (ref.includes("'")) return { kind: 'unknown', text: ref };
  return { kind: 'fact', when: `run.ref == '${ref}'`, shell: `[ ${REF} = '${ref}' ]` };
}

/** By a pattern of `case`, which is not quoted here. */
export function refMatches(pattern: string): Condition {
  return { kind: 'fact', shell: `case ${REF} in ${pattern}) true ;; *) false ;; esac` };
}

export const IS_TAG = refMatches('refs/tags/*');
export const IS_BRANCH = refMatches('refs/heads/*');

/** A pattern such as `release/*`, or a plain name. */
export function branchIs(pattern: string): Condition {
  return named('refs/heads/', pattern);
}

export function tagIs(pattern: string): Condition {
  return named('refs/tags/', pattern);
}

function named(kind: string, pattern: string): Condition {
  if (/^[\w./-]+$/.test(pattern)) return refIs(`${kind}${pattern}`);
  const alternatives = /^([^{}]*)\{([^{}]*)\}([^{}]*)$/.exec(pattern);
  if (alternatives !== null) {
    const [, before = '', choices = '', after = ''] = alternatives;
    return any(choices.split(',').map((choice) => named(kind, `${before}${choice}${after}`)));
  }
  if (!/^[\w./*?[\]+@-]+$/.test(pattern)) return { kind: 'unknown', text: pattern };
  return refMatches(`${kind}${pattern.replaceAll('**', '*')}`);
}

/** A command of a shell for the whole of it; undefined where some of it is not known, or cannot be said so. */
export function shellOf(condition: Condition): string | undefined {
  if (condition.kind === 'always') return 'true';
  if (condition.kind === 'fact') return condition.shell;
  if (condition.kind === 'unknown') return undefined;
  if (condition.kind === 'not') {
    const inner = shellOf(condition.of);
    return inner === undefined ? undefined : `! { ${inner}; }`;
  }
  const sides = condition.sides.map(shellOf);
  if (sides.includes(undefined)) return undefined;
  return sides.map((side) => `{ ${side}; }`).join(condition.kind === 'and' ? ' && ' : ' || ');
}

/** What of it is not known, by its text; empty: all of it is known. */
export function unknownIn(condition: Condition): string {
  if (condition.kind === 'unknown') return condition.text;
  if (condition.kind === 'not') return unknownIn(condition.of);
  if (condition.kind === 'and' || condition.kind === 'or')
    return condition.sides.map(unknownIn).find((text) => text !== '') ?? '';
  return '';
}

/** The conditions of a file; `finish` adds the stage that finds out what only a shell can say. */
export class Conditions {
  readonly #outputs = new Map<string, string>();
  /** Stages, and whose condition could not be said. */
  readonly #unsaid = new Map<DraftStage, string>();
  /** Of the stage that finds out. */
  #name = CONDITIONS;

  /** Before any condition is said: a job may have the name, and others come after it. */
  keepApartFrom(names: Iterable<string>): void {
    const taken = new Set(names);
    for (let number = 2; taken.has(this.#name); number++) this.#name = `${CONDITIONS}_${number}`;
  }

  /** For `when`; undefined where some of it is not known. An empty text always holds. */
  whenOf(condition: Condition): string | undefined {
    if (condition.kind === 'always') return '';
    if (condition.kind === 'unknown') return undefined;
    if (condition.kind === 'fact') return condition.when ?? this.#found(condition.shell ?? 'true');
    if (condition.kind === 'not') {
      const inner = this.whenOf(condition.of);
      if (inner === undefined) return undefined;
      return inner === '' ? 'false' : `!(${inner})`;
    }
    const sides = condition.sides.map((side) => this.whenOf(side));
    if (sides.includes(undefined)) return undefined;
    const said = sides.filter((side): side is string => side !== undefined && side !== '');
    if (condition.kind === 'or' && said.length < sides.length) return '';
    const joined = said.map((side, index) => (isCompound(condition, index) ? `(${side})` : side));
    return joined.join(condition.kind === 'and' ? ' && ' : ' || ');
  }

  /**
   * Gives the stage its condition, and lets it come after the stage that finds it out. False where it cannot be said: the stage
   * fails then (CONDITION-2), `text` in its log.
   */
  apply(stage: DraftStage, condition: Condition, text: string): boolean {
    const when = this.whenOf(condition);
    if (when === undefined) {
      this.#unsaid.set(stage, text);
      return false;
    }
    if (when === '') return true;
    stage.when = stage.when === undefined ? when : `(${stage.when}) && (${when})`;
    this.comeAfter(stage, when);
    return true;
  }

  /** The stage comes after the one that finds out what `when` reads. */
  comeAfter(stage: DraftStage, when: string): void {
    if (when.includes(`stages.${this.#name}.`) && !stage.after.includes(this.#name)) stage.after.unshift(this.#name);
  }

  finish(draft: Draft): void {
    for (const [stage, text] of this.#unsaid) stage.run.unshift(missing(`a job with ${text}`));
    if (this.#outputs.size === 0) return;
    const stage = newStage(this.#name);
    if ([...this.#outputs.keys()].some((shell) => shell.includes('$TRIGGER')))
      stage.env['TRIGGER'] = '${{ run.trigger }}';
    if ([...this.#outputs.keys()].some((shell) => shell.includes('$ACTOR'))) stage.env['ACTOR'] = '${{ run.actor }}';
    for (const [shell, name] of this.#outputs) {
      stage.run.push(`if ${shell}; then echo ${name}=yes; else echo ${name}=no; fi >>"$SERVICE_OUTPUT"`);
      stage.outputs.push(name);
    }
    draft.stages.unshift(stage);
  }

  #found(shell: string): string {
    let name = this.#outputs.get(shell);
    if (name === undefined) {
      name = `c${this.#outputs.size + 1}`;
      this.#outputs.set(shell, name);
    }
    return `stages.${this.#name}.outputs.${name} == 'yes'`;
  }
}

function isCompound(condition: Condition & { readonly kind: 'and' | 'or' }, index: number): boolean {
  const side = condition.sides[index];
  return side?.kind === 'and' || side?.kind === 'or';
}
