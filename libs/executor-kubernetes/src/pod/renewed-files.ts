/** The files of a stage that may be replaced while it runs: in its guard's folder, which it can read and not write. */
import { GUARD_FOLDER } from './pod-manifest.ts';

export class RenewedFiles {
  /** By variable; those of a stage that an earlier process has begun as far as they were replaced since. */
  readonly #contents: Map<string, string>;

  constructor(files: readonly { readonly variable: string; readonly content: string }[] = []) {
    this.#contents = new Map(files.map(({ variable, content }) => [variable, content]));
  }

  /** Their paths, by variable. */
  get env(): Readonly<Record<string, string>> {
    const names = [...this.#contents.keys()];
    return Object.fromEntries(names.map((variable) => [variable, `${GUARD_FOLDER}/${nameOf(variable)}`]));
  }

  /** All of them, to a line that has just come up: what the one before was told may not have arrived. */
  get orders(): readonly string[] {
    return [...this.#contents].map(([variable, content]) => orderOf(variable, content));
  }

  /** The order that does it. */
  replace(variable: string, content: string): string {
    this.#contents.set(variable, content);
    return orderOf(variable, content);
  }
}

function orderOf(variable: string, content: string): string {
  return `file ${nameOf(variable)} ${content}`;
}

function nameOf(variable: string): string {
  return `file-${variable}`;
}
