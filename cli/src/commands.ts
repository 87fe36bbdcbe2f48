/** Every command of `penstock`; each is loaded only when it is called, for most of the time of a short run is loading. */
import type { Command } from './command.ts';

interface CommandEntry {
  readonly name: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

export const COMMANDS: readonly CommandEntry[] = [
  { name: 'run', summary: 'run a pipeline file on this machine, without a server', load: async () => (await import('./commands/run.ts')).runCommand },
  { name: 'validate', summary: 'check a pipeline file and point at its problems', load: async () => (await import('./commands/validate.ts')).validateCommand },
  { name: 'serve', summary: 'start a server on this machine', load: async () => (await import('./commands/serve.ts')).serveCommand },
  { name: 'service', summary: 'run one service of a cluster as a process of its own', load: async () => (await import('./commands/service.ts')).serviceCommand },
  { name: 'trigger', summary: 'send a pipeline file to a server and follow its run', load: async () => (await import('./commands/trigger.ts')).triggerCommand },
  { name: 'logs', summary: 'show and follow the logs of a run on a server', load: async () => (await import('./commands/logs.ts')).logsCommand },
  { name: 'version', summary: 'say which version this is', load: async () => (await import('./commands/version.ts')).versionCommand },
  { name: 'help', summary: 'explain a command', load: async () => (await import('./commands/help.ts')).helpCommand },
];

export function commandNamed(name: string): CommandEntry | undefined {
  return COMMANDS.find((entry) => entry.name === name);
}
