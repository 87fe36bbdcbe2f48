/** How long something took, as it is read at a glance: `34 ms`, `2.5 s`, `41 s`, `3 min 7 s`, `2 h 5 min`. Less than nothing (clocks differ) is `0 ms`. */
export function durationOf(ms: number): string {
  const millis = Math.max(0, Math.round(ms));
  if (millis < 1_000) return `${millis} ms`;
  if (millis < 9_950) return `${(millis / 1_000).toFixed(1)} s`;
  const seconds = Math.round(millis / 1_000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${Math.floor(seconds / 3_600)} h ${Math.floor((seconds % 3_600) / 60)} min`;
}
