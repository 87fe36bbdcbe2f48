/** For a person: those of quotas, a million bytes each. */
export function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1);
}
