/** Finishes a stage whose script comes from an engine that sets variables. */
import type { DraftStage } from './draft.ts';
import { preludeOf, type HostVariables } from './host-variables.ts';
import type { Ledger } from './ledger.ts';

/** Of variables that are made of others: they are set by the script, in the order of the file. */
export interface ScriptParts {
  /** Commands that set variables. */
  readonly exports: readonly string[];
  readonly commands: readonly string[];
  readonly table: HostVariables;
  readonly prefix: RegExp;
  /** Variables that are set otherwise. */
  readonly own: ReadonlySet<string>;
  readonly line: number;
}

export function finishScript(stage: DraftStage, parts: ScriptParts, ledger: Ledger): void {
  const { exports, commands, table, prefix, own, line } = parts;
  const prelude = preludeOf([...exports, ...commands], table, {
    prefix,
    own: new Set([...own, ...Object.keys(stage.env), ...Object.keys(stage.secrets)]),
    stage: stage.name,
  });
  Object.assign(stage.env, prelude.env);
  for (const name of prelude.unknown)
    ledger.tell(
      line,
      `the variable $${name}, which '${stage.name}' reads`,
      'set it under `env`, if there is something like it',
    );
  stage.run = [...prelude.commands, ...exports, ...commands];
  if (stage.run.length === 0) stage.run = ['true'];
}
