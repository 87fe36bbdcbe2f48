/** A real Prometheus beside a cluster of processes. It owns the process and its folder. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Cluster } from '../../cluster/cluster.ts';
import { until } from '../../support/wait.ts';

export class Prometheus {
  readonly url: string;
  readonly #folder: string;
  #child: ChildProcess | undefined;
  #told = '';

  constructor(folder: string, port: number) {
    this.#folder = folder;
    this.url = `http://127.0.0.1:${port}`;
    mkdirSync(folder);
    const targets = { file_sd_configs: [{ files: [join(folder, 'targets.json')], refresh_interval: '1s' }] };
    const config = {
      global: { scrape_interval: '5s', scrape_timeout: '4s' },
      scrape_configs: [{ job_name: 'penstock', ...targets }],
    };
    writeFileSync(join(folder, 'prometheus.yml'), JSON.stringify(config));
  }

  /** Those that live now; each start of a process has another port. */
  scrapes({ processes }: Cluster): void {
    const targets = processes.flatMap(({ internalUrl }) =>
      internalUrl === undefined ? [] : [new URL(internalUrl).host],
    );
    const told = JSON.stringify([{ targets }]);
    if (told === this.#told) return;
    this.#told = told;
    // Whole or not at all.
    writeFileSync(join(this.#folder, 'targets.new'), told);
    renameSync(join(this.#folder, 'targets.new'), join(this.#folder, 'targets.json'));
  }

  async start(): Promise<void> {
    const words = [
      `--config.file=${join(this.#folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(this.#folder, 'data')}`,
      `--web.listen-address=${new URL(this.url).host}`,
    ];
    this.#child = spawn('prometheus', words, { stdio: 'ignore' });
    await once(this.#child, 'spawn');
    await until(
      'Prometheus is ready',
      async () =>
        await fetch(`${this.url}/-/ready`).then(
          ({ ok }) => ok,
          () => false,
        ),
    );
  }

  /** Null: it has no figure. */
  async figure(query: string): Promise<number | null> {
    const response = await fetch(`${this.url}/api/v1/query?query=${encodeURIComponent(query)}`);
    const { data } = (await response.json()) as { data: { result: { value: [number, string] }[] } };
    const [first] = data.result;
    return first === undefined ? null : Number(first.value[1]);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  }
}
