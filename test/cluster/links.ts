/** What stands between one process and one server, or several of a kind: proxies that break together. */
import { startProxy, type Direction, type HoldsBack, type Proxy } from '@penstock/testkit';

export interface Link {
  /** In the order of the servers that it leads to. */
  readonly ports: readonly number[];
  /** Of NATS, comma-separated. */
  readonly url: string;
  shut(): void;
  blackhole(direction: Direction): void;
  slow(delayMs: number): void;
  /** See `Proxy`. */
  look(holdsBack: HoldsBack | null): void;
  letGo(): void;
  /** Ends what was done to it, and every connection with it. */
  cut(): void;
  stop(): Promise<void>;
}

async function startLink(ports: readonly number[]): Promise<Link> {
  const proxies: Proxy[] = [];
  for (const port of ports) proxies.push(await startProxy(port));
  const each = (verb: (proxy: Proxy) => void) => (): void => proxies.forEach(verb);
  return {
    ports: proxies.map(({ port }) => port),
    url: proxies.map(({ url }) => url).join(','),
    shut: each((proxy) => proxy.shut()),
    blackhole: (direction) => proxies.forEach((proxy) => proxy.blackhole(direction)),
    slow: (delayMs) => proxies.forEach((proxy) => proxy.slow(delayMs)),
    look: (holdsBack) => proxies.forEach((proxy) => proxy.look(holdsBack)),
    letGo: each((proxy) => proxy.letGo()),
    cut: each((proxy) => proxy.cut()),
    stop: async () => void (await Promise.all(proxies.map((proxy) => proxy.stop()))),
  };
}

/** By the names of the processes. */
export type Links = ReadonlyMap<string, Link>;

export async function startLinks(names: readonly string[], ports: readonly number[]): Promise<Links> {
  const links = new Map<string, Link>();
  for (const name of names) links.set(name, await startLink(ports));
  return links;
}

export async function stopLinks(links: Links): Promise<void> {
  await Promise.all([...links.values()].map((link) => link.stop()));
}
