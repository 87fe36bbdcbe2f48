/** The machines that no stage is to reach, by the addresses that this process itself has of them. */

/** Of an address such as `nats://user:password@a:4222` or `mongodb://a:27017,b:27017/name`. */
export function hostsOf(address: string): string[] {
  const authority = /^[a-z+]+:\/\/([^/?]*)/.exec(address)?.[1] ?? '';
  return authority
    .slice(authority.lastIndexOf('@') + 1)
    .split(',')
    .map((host) => host.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1'))
    .filter((host) => host !== '');
}
