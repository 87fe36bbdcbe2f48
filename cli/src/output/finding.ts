/** What `penstock doctor` says of one thing that a machine or a server can have. */

export interface Finding {
  readonly name: string;
  readonly ok: boolean;
  readonly found: string;
  readonly remedy?: string | undefined;
}

export function findingText({ name, ok, found, remedy }: Finding): string {
  return `${ok ? 'ok   ' : 'lacks'} ${name.padEnd(12)} ${found}${remedy === undefined ? '' : `\n                   ${remedy}`}\n`;
}
