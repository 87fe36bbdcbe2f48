/** Where this machine reaches a server: one that listens on all addresses (`0.0.0.0`, `::`) on the loopback one, for the first is none to go to. */
export function reachableUrl(url: string): string {
  return url
    .replace(/^(https?:\/\/)0\.0\.0\.0(?=:|$)/u, '$1127.0.0.1')
    .replace(/^(https?:\/\/)\[::\](?=:|$)/u, '$1[::1]');
}
