/** Every command of `penstock`; each is loaded only when it is called, for most of the time of a short run is loading. */
import type { CommandEntry } from './command-line/command-list.ts';

const EXTENSION_COMMANDS: readonly CommandEntry[] = [
  {
    name: 'extension init',
    summary: 'begin an extension with an example that works',
    load: async () => (await import('./commands/extension/init.ts')).extensionInitCommand,
  },
  {
    name: 'extension check',
    summary: 'check an extension and point at its problems',
    load: async () => (await import('./commands/extension/check.ts')).extensionCheckCommand,
  },
  {
    name: 'extension test',
    summary: 'run an extension on this machine with inputs',
    load: async () => (await import('./commands/extension/test.ts')).extensionTestCommand,
  },
  {
    name: 'extension pack',
    summary: 'make its package',
    load: async () => (await import('./commands/extension/pack.ts')).extensionPackCommand,
  },
  {
    name: 'extension publish',
    summary: 'send it to the registry of a server',
    load: async () => (await import('./commands/extension/publish.ts')).extensionPublishCommand,
  },
  {
    name: 'extension yank',
    summary: 'keep a version from being used anew',
    load: async () => (await import('./commands/extension/yank.ts')).extensionYankCommand,
  },
  {
    name: 'extension search',
    summary: 'find extensions',
    load: async () => (await import('./commands/extension/search.ts')).extensionSearchCommand,
  },
  {
    name: 'extension info',
    summary: 'show an extension, its versions and its inputs',
    load: async () => (await import('./commands/extension/info.ts')).extensionInfoCommand,
  },
  {
    name: 'extension keygen',
    summary: 'make a key to sign packages with',
    load: async () => (await import('./commands/extension/keygen.ts')).extensionKeygenCommand,
  },
  {
    name: 'extension sign',
    summary: 'sign a package',
    load: async () => (await import('./commands/extension/sign.ts')).extensionSignCommand,
  },
];

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'run',
    summary: 'run a pipeline file on this machine, without a server',
    load: async () => (await import('./commands/run.ts')).runCommand,
  },
  {
    name: 'validate',
    summary: 'check a pipeline file and point at its problems',
    load: async () => (await import('./commands/validate.ts')).validateCommand,
  },
  {
    name: 'graph',
    summary: 'draw what a pipeline file would run',
    load: async () => (await import('./commands/graph.ts')).graphCommand,
  },
  {
    name: 'migrate',
    summary: 'translate a CI file of another engine into a pipeline file',
    load: async () => (await import('./commands/migrate.ts')).migrateCommand,
  },
  {
    name: 'serve',
    summary: 'start a server on this machine',
    load: async () => (await import('./commands/serve.ts')).serveCommand,
  },
  {
    name: 'service',
    summary: 'run one service of a cluster as a process of its own',
    load: async () => (await import('./commands/service.ts')).serviceCommand,
  },
  {
    name: 'runner',
    summary: 'make this machine a runner of a server',
    load: async () => (await import('./commands/runner.ts')).runnerCommand,
  },
  {
    name: 'runner-token',
    summary: 'make, list and revoke tokens by which machines become runners',
    load: async () => (await import('./commands/runner-token.ts')).runnerTokenCommand,
  },
  {
    name: 'trigger',
    summary: 'send a pipeline file to a server and follow its run',
    load: async () => (await import('./commands/trigger.ts')).triggerCommand,
  },
  {
    name: 'dispatch',
    summary: 'run the file of a repository at a branch or a tag',
    load: async () => (await import('./commands/dispatch.ts')).dispatchCommand,
  },
  {
    name: 'rerun',
    summary: 'run a run on a server again, or a part of it',
    load: async () => (await import('./commands/rerun.ts')).rerunCommand,
  },
  {
    name: 'logs',
    summary: 'show and follow the logs of a run on a server',
    load: async () => (await import('./commands/logs.ts')).logsCommand,
  },
  {
    name: 'runs',
    summary: 'list the runs on a server',
    load: async () => (await import('./commands/runs.ts')).runsCommand,
  },
  {
    name: 'status',
    summary: 'show how a run on a server stands, as a graph',
    load: async () => (await import('./commands/status.ts')).statusCommand,
  },
  {
    name: 'explain',
    summary: 'say why a run on a server waits, or why it failed',
    load: async () => (await import('./commands/explain.ts')).explainCommand,
  },
  {
    name: 'cancel',
    summary: 'cancel a run on a server',
    load: async () => (await import('./commands/cancel.ts')).cancelCommand,
  },
  {
    name: 'approve',
    summary: 'approve a stage that waits for it',
    load: async () => (await import('./commands/decide.ts')).approveCommand,
  },
  {
    name: 'reject',
    summary: 'reject a stage that waits for approval',
    load: async () => (await import('./commands/decide.ts')).rejectCommand,
  },
  {
    name: 'artifacts',
    summary: 'list and fetch the files that a run on a server keeps',
    load: async () => (await import('./commands/artifacts.ts')).artifactsCommand,
  },
  {
    name: 'lock',
    summary: 'write down which versions of extensions a pipeline file uses',
    load: async () => (await import('./commands/lock.ts')).lockCommand,
  },
  {
    name: 'extension',
    summary: 'make, test, publish and find extensions',
    load: async () => (await import('./commands/extension/extension.ts')).extensionCommand(EXTENSION_COMMANDS),
  },
  ...EXTENSION_COMMANDS,
  {
    name: 'login',
    summary: 'log in to a server, for the commands that follow',
    load: async () => (await import('./commands/login.ts')).loginCommand,
  },
  {
    name: 'logout',
    summary: 'end your logins on a server',
    load: async () => (await import('./commands/logout.ts')).logoutCommand,
  },
  {
    name: 'whoami',
    summary: 'say who you are on a server',
    load: async () => (await import('./commands/whoami.ts')).whoamiCommand,
  },
  {
    name: 'token',
    summary: 'make, list and revoke personal tokens',
    load: async () => (await import('./commands/token.ts')).tokenCommand,
  },
  {
    name: 'cache',
    summary: 'list and remove what runs on a server have left for later ones',
    load: async () => (await import('./commands/cache.ts')).cacheCommand,
  },
  {
    name: 'schedule',
    summary: 'show, pause and resume what a server starts by itself',
    load: async () => (await import('./commands/schedule.ts')).scheduleCommand,
  },
  {
    name: 'access',
    summary: 'let others work on a connected repository',
    load: async () => (await import('./commands/access.ts')).accessCommand,
  },
  {
    name: 'hook',
    summary: 'have a server tell an address of your runs',
    load: async () => (await import('./commands/hook.ts')).hookCommand,
  },
  {
    name: 'secret',
    summary: 'set, list and remove the secrets of stages',
    load: async () => (await import('./commands/secret.ts')).secretCommand,
  },
  {
    name: 'admin',
    summary: 'show how a server stands, pause it, drain runners, see who did what',
    load: async () => (await import('./commands/admin/admin.ts')).adminCommand,
  },
  {
    name: 'doctor',
    summary: 'say what this machine can do, and what it lacks',
    load: async () => (await import('./commands/doctor.ts')).doctorCommand,
  },
  {
    name: 'completion',
    summary: 'print a script with which a shell completes this command',
    load: async () => (await import('./commands/completion.ts')).completionCommand(COMMANDS),
  },
  {
    name: 'version',
    summary: 'say which version this is',
    load: async () => (await import('./commands/version.ts')).versionCommand,
  },
  {
    name: 'help',
    summary: 'explain a command',
    load: async () => (await import('./commands/help.ts')).helpCommand(COMMANDS),
  },
];
