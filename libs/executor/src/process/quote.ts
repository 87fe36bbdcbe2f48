/** As one word of a POSIX shell, with nothing in it that the shell acts upon. */
export function quote(value: string): string {
  return value.includes("'") ? `'${value.replaceAll("'", "'\\''")}'` : `'${value}'`;
}
